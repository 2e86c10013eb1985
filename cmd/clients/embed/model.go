package main

import (
	_ "embed"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"

	"github.com/gomlx/onnx-gomlx/onnx"
	"google.golang.org/protobuf/encoding/prototext"
	"google.golang.org/protobuf/proto"
)

// The graph of a model.
var (
	//go:embed encoder.txtpb
	whole string
	//go:embed layer.txtpb
	layer string
)

const longest = 128 // tokens of a text

// An encoder is the sizes of a model.
type encoder struct{ layers, hidden, heads, inner, words int }

// write makes a folder with random weights, and a tokenizer that knows the words w4, w5 and so on.
func (e encoder) write(dir string) error {
	words := map[string]int{"[PAD]": 0, "[UNK]": 1, "[CLS]": 2, "[SEP]": 3}
	for i := len(words); i < e.words; i++ {
		words[fmt.Sprintf("w%d", i)] = i
	}
	tokenizer, _ := json.Marshal(map[string]any{
		"model":          map[string]any{"type": "WordLevel", "unk_token": "[UNK]", "vocab": words},
		"pre_tokenizer":  map[string]any{"type": "Whitespace"},
		"post_processor": map[string]any{"type": "BertProcessing", "cls": []any{"[CLS]", 2}, "sep": []any{"[SEP]", 3}},
	})
	model, err := e.model()
	for name, data := range map[string][]byte{
		"model.onnx":     model,
		"tokenizer.json": tokenizer,
		"config.json":    fmt.Appendf(nil, `{"max_position_embeddings": %d}`, longest),
	} {
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, name), data, 0o666)
		}
	}
	return err
}

// model returns an ONNX model.
func (e encoder) model() ([]byte, error) {
	var layers strings.Builder
	for n := range e.layers {
		layers.WriteString(strings.NewReplacer("$+1", fmt.Sprint(n+1), "$", fmt.Sprint(n)).Replace(layer))
	}
	sizes := strings.NewReplacer("HIDDEN", fmt.Sprint(e.hidden), "HEADS", fmt.Sprint(e.heads), "INNER", fmt.Sprint(e.inner),
		"WORDS", fmt.Sprint(e.words), "LONGEST", fmt.Sprint(longest), "DEPTH", fmt.Sprint(e.layers))
	var m onnx.Model
	if err := prototext.Unmarshal([]byte(sizes.Replace(strings.Replace(whole, "  LAYERS\n", layers.String(), 1))), &m.Proto); err != nil {
		return nil, err
	}
	random := rand.New(rand.NewPCG(1, 2))
	for _, weight := range m.Proto.Graph.Initializer {
		size := int64(1)
		for _, n := range weight.Dims {
			size *= n
		}
		numbers := make([]float32, size)
		for i := range numbers {
			numbers[i] = float32(random.NormFloat64() / math.Sqrt(float64(weight.Dims[0])))
		}
		weight.RawData, _ = binary.Append(nil, binary.LittleEndian, numbers)
	}
	return proto.Marshal(&m.Proto)
}

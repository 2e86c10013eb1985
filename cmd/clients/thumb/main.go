// Thumb is an image service over libvips, by govips: a request is a photograph, which
// it turns and makes small.
package main

// #cgo pkg-config: vips
// #include <vips/vips.h>
import "C"

import (
	"bytes"
	"image"
	"image/color"
	"image/jpeg"
	"math/rand/v2"
	"runtime"

	"github.com/davidbyttow/govips/v2/vips"

	"github.com/eagergc/eagergc/cmd/clients/frame"
	_ "github.com/eagergc/eagergc/gc/auto" // the parent sets EAGERGC=off for all ways but auto
)

const (
	width  = 2000 // of the photograph, in pixels
	height = 1500
)

func main() {
	frame.Main("thumb", frame.Client{Workers: 4, Requests: 60, Gauge: func() int64 { return int64(C.vips_tracked_get_mem()) }, Start: start})
}

func start(w *frame.Way) (frame.Service, error) {
	vips.LoggingSettings(nil, vips.LogLevelError)
	if err := vips.Startup(&vips.Config{MaxCacheMem: 0, MaxCacheSize: 0}); err != nil {
		return nil, err
	}
	photo, err := photograph()
	if err != nil {
		return nil, err
	}
	return func(int) error { return serve(w, photo) }, nil
}

// photograph returns a JPEG of a gradient with noise, which packs as a photograph does.
func photograph() ([]byte, error) {
	random := rand.New(rand.NewPCG(1, 2))
	m := image.NewRGBA(image.Rect(0, 0, width, height))
	for y := range height {
		for x := range width {
			n := uint8(random.IntN(24))
			m.Set(x, y, color.RGBA{uint8(x*200/width) + n, uint8(y*200/height) + n, uint8((x+y)*100/(width+height)) + n, 255})
		}
	}
	var out bytes.Buffer
	err := jpeg.Encode(&out, m, &jpeg.Options{Quality: 85})
	return out.Bytes(), err
}

func serve(w *frame.Way, photo []byte) error {
	large, err := vips.NewImageFromBuffer(photo)
	if err != nil {
		return err
	}
	defer hold(w, large)()
	if err := large.Rotate(vips.Angle90); err != nil { // needs all of the picture in memory
		return err
	}
	small, err := large.Copy()
	if err != nil {
		return err
	}
	defer hold(w, small)()
	if err := small.Resize(0.25, vips.KernelLinear); err != nil {
		return err
	}
	if _, _, err := small.ExportJpeg(vips.NewJpegExportParams()); err != nil {
		return err
	}
	runtime.KeepAlive(large)
	return nil
}

func hold(w *frame.Way, img *vips.ImageRef) (done func()) {
	return frame.Hold(w, img, int64(img.Width())*int64(img.Height())*int64(img.Bands()), img.Close)
}

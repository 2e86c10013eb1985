package govips

import (
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/davidbyttow/govips/v2/vips"

	"github.com/eagergc/eagergc/gc"
)

func TestMain(m *testing.M) {
	vips.LoggingSettings(nil, vips.LogLevelError)
	if err := vips.Startup(&vips.Config{}); err != nil {
		panic(err)
	}
	m.Run()
}

// packed is an image of 3 MB, as a PNG.
var packed = sync.OnceValues(func() ([]byte, error) {
	image, err := vips.Black(1000, 1000)
	if err != nil {
		return nil, err
	}
	defer image.Close()
	if err := image.ToColorSpace(vips.InterpretationSRGB); err != nil {
		return nil, err
	}
	text, _, err := image.ExportPng(vips.NewPngExportParams())
	return text, err
})

// picture makes an image of 3 MB, which libvips unpacks into memory once its pixels are asked for.
func picture() (*vips.ImageRef, error) {
	text, err := packed()
	if err != nil {
		return nil, err
	}
	return vips.NewImageFromBuffer(text)
}

func pixels(t *testing.T, image *vips.ImageRef) {
	t.Helper()
	if err := image.Rotate(vips.Angle90); err != nil {
		t.Fatal(err)
	}
	if _, err := image.Average(); err != nil { // nothing on the Go heap, which would have cycles come
		t.Fatal(err)
	}
}

func collector(t *testing.T) *gc.Collector {
	t.Helper()
	c, err := gc.New(gc.Config{Policy: gc.MustParse(gc.HostPolicy).New()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

// Images that nobody closes go back, whichever way they are counted.
func TestForgottenImagesGoBack(t *testing.T) {
	for name, start := range map[string]func(*gc.Collector) func() (*vips.ImageRef, error){
		"gauge": func(c *gc.Collector) func() (*vips.ImageRef, error) { Watch(c); return picture },
		"own": func(c *gc.Collector) func() (*vips.ImageRef, error) {
			return func() (*vips.ImageRef, error) { i, err := picture(); return Own(c, i, err) }
		},
	} {
		t.Run(name, func(t *testing.T) {
			c := collector(t)
			make := start(c)
			var most int64
			for range 100 {
				image, err := make()
				if err != nil {
					t.Fatal(err)
				}
				pixels(t, image)
				most = max(most, Tracked())
			}
			if most < 3_000_000 || most > 150<<20 {
				t.Errorf("at most %d bytes of 300 MB", most)
			}
			for end := time.Now().Add(20 * time.Second); Tracked() > 12<<20; runtime.GC() {
				if time.Now().After(end) {
					t.Fatalf("%d bytes are left", Tracked())
				}
				time.Sleep(time.Millisecond)
			}
		})
	}
}

func TestBytes(t *testing.T) {
	image, err := picture()
	if err != nil {
		t.Fatal(err)
	}
	defer image.Close()
	if got := Bytes(image); got != 3_000_000 {
		t.Errorf("%d bytes", got)
	}
	if _, err := Own(collector(t), nil, vips.ErrUnsupportedImageFormat); err != vips.ErrUnsupportedImageFormat {
		t.Errorf("the error is gone: %v", err)
	}
}

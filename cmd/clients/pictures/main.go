// Pictures blurs and shrinks pictures with ImageMagick. The binding's finalizers free its wands.
package main

import (
	"fmt"
	"os"

	"gopkg.in/gographics/imagick.v2/imagick"

	"github.com/eagergc/eagergc/cmd/clients/frame"
	_ "github.com/eagergc/eagergc/gc/auto" // the parent sets EAGERGC=off for all ways but auto
)

const side = 512 // of a picture, in pixels

func main() {
	os.Setenv("MAGICK_THREAD_LIMIT", "1") // each request uses one thread
	imagick.Initialize()
	frame.Main("pictures", frame.Client{Workers: 2, Requests: 120, Start: start})
}

func start(w *frame.Way) (frame.Service, error) {
	paint := imagick.NewPixelWand()
	return func(i int) error {
		wand := imagick.NewMagickWand()
		defer frame.Hold(w, wand, side*side*8, wand.Destroy)()
		if err := wand.NewImage(side, side, paint); err != nil {
			return err
		}
		if err := wand.BlurImage(0, 1); err != nil {
			return err
		}
		small := wand.Clone()
		defer frame.Hold(w, small, side*side*2, small.Destroy)()
		if err := small.ResizeImage(side/2, side/2, imagick.FILTER_TRIANGLE, 1); err != nil {
			return err
		}
		if got := small.GetImageWidth(); got != side/2 {
			return fmt.Errorf("picture %d is %d wide", i, got)
		}
		return nil
	}, nil
}

// Package govips counts the images of govips, which are memory of libvips, in either of
// two ways. Govips has a finalizer for each image; both make cycles come
// early enough that they run.
//
// By gauge, with no change where images are made:
//
//	gauge := govips.Watch(collector)
//
// Image by image, which is known to the byte and asks at each of them:
//
//	image, err := govips.Own(collector, vips.NewImageFromBuffer(data))
package govips

// #cgo pkg-config: vips
// #include <vips/vips.h>
import "C"

import (
	"github.com/davidbyttow/govips/v2/vips"

	"github.com/eagergc/eagergc/gc"
)

// Tracked returns the bytes that libvips has allocated for pixels and not freed, by its own
// count (vips_tracked_get_mem). Pictures that are still packed, and what codecs use, are not in it.
func Tracked() int64 { return int64(C.vips_tracked_get_mem()) }

// Watch makes c collect for them. The gauge is the caller's, who may close it.
func Watch(c *gc.Collector) *gc.Gauge { return gc.Watch(c, Tracked) }

// Own counts the pixels of an image, as the function that made it returned it, until the image is
// found dead and govips's finalizer has freed them. It returns image and err as they are. Close the image
// to free it earlier; its bytes count until the next cycle.
func Own(c *gc.Collector, image *vips.ImageRef, err error) (*vips.ImageRef, error) {
	if err == nil {
		gc.Count(c, image, Bytes(image))
	}
	return image, err
}

// Bytes is what the image's pixels take once they are unpacked.
func Bytes(image *vips.ImageRef) int64 {
	size := map[vips.BandFormat]int64{
		vips.BandFormatUchar: 1, vips.BandFormatChar: 1, vips.BandFormatUshort: 2, vips.BandFormatShort: 2,
		vips.BandFormatUint: 4, vips.BandFormatInt: 4, vips.BandFormatFloat: 4, vips.BandFormatComplex: 8,
		vips.BandFormatDouble: 8, vips.BandFormatDpComplex: 16,
	}[image.BandFormat()]
	return int64(image.Width()) * int64(image.Height()) * int64(image.Bands()) * max(1, size)
}

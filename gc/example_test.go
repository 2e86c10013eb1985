package gc_test

import (
	"fmt"
	"log"
	"runtime"
	"time"

	"github.com/eagergc/eagergc/gc"
	"github.com/eagergc/eagergc/gc/policy"
)

// An Image is a picture that a C library holds: 8 MiB there, a few bytes here.
type Image struct {
	pixels uintptr // C memory
	width  int
}

// decode stands for the library: it returns memory and what frees it.
func decode(name string) (pixels uintptr, bytes int64, free func(uintptr)) {
	return 1, 8 << 20, func(uintptr) {}
}

// load is all that an app has to add, once it has an object that owns memory.
func load(name string) error {
	pixels, bytes, free := decode(name)
	img := &Image{pixels: pixels, width: 1024}

	collector, err := gc.New(gc.Config{Limit: 8 << 30}) // the policy is gc.HostPolicy, or that of $EAGERGC_POLICY
	if err != nil {
		return err
	}
	gc.Own(collector, img, bytes, free, pixels) // counts bytes; may run a cycle; a cycle calls free(pixels) once img is unreachable

	defer collector.Close()
	fmt.Println("live:", collector.Snapshot().Sources[0].Live)
	runtime.KeepAlive(img) // in use until here
	return nil
}

func Example() {
	if err := load("1.jpeg"); err != nil {
		log.Fatal(err)
	}
	// Output: live: 8388608
}

// The collector frees memory of the program once the Go object that owns it has died.
func ExampleOwn() {
	collector, err := gc.New(gc.Config{Limit: 64 << 20})
	if err != nil {
		log.Fatal(err)
	}
	defer collector.Close()

	open := func(name string) *Image {
		pixels, bytes, free := decode(name)
		img := &Image{pixels: pixels, width: 1024}
		gc.Own(collector, img, bytes, free, pixels)
		return img
	}

	const n = 1000 // 8 GiB in all
	for i := range n {
		open(fmt.Sprint(i, ".jpeg"))
	}
	collector.Collect(policy.TriggerExplicit)
	for collector.Stats().Pending > 0 { // a free that takes long outlasts its cycle
		time.Sleep(time.Millisecond)
	}
	fmt.Println("left over:", collector.Snapshot().Sources[0].Live)
	fmt.Println("given back in all:", collector.Stats().Freed == n*8<<20)
	// Output:
	// left over: 0
	// given back in all: true
}

// Around a wait for the device, a cycle costs only what outlasts the wait.
func ExampleCollector_Sync() {
	collector, err := gc.New(gc.Config{Policy: policy.MustParse("always").New()})
	if err != nil {
		log.Fatal(err)
	}
	defer collector.Close()
	gc.Own(collector, new(Image), 8<<20, func(what string) { fmt.Println("freed", what) }, "the image")

	step := &gc.WaitPlace{Name: "training step"}
	if err := collector.Sync(step, func() error {
		return nil // wait for the device here
	}); err != nil {
		log.Fatal(err)
	}
	for collector.Stats().Pending > 0 {
		time.Sleep(time.Millisecond)
	}
	// Output: freed the image
}

// Programs of several ranks wait for each other anyway. If they collect at the same
// step they are late together, and not one after the other.
func ExampleCollector_Due() {
	ranks := make([]*gc.Collector, 4)
	for i := range ranks {
		c, err := gc.New(gc.Config{Policy: policy.MustParse("threshold:0.5").New(), Limit: 100})
		if err != nil {
			log.Fatal(err)
		}
		defer c.Close()
		ranks[i] = c
		gc.Own(c, new(Image), int64(20*i), func(int) {}, i) // rank 3 is at 60 % of its limit
	}

	due := false
	for _, c := range ranks {
		due = c.Due() || due // an all-reduce, between processes
	}
	if due {
		for _, c := range ranks {
			c.Collect(policy.TriggerPolicy)
		}
	}
	for rank, c := range ranks {
		for c.Stats().Pending > 0 {
			time.Sleep(time.Millisecond)
		}
		fmt.Println("rank", rank, "freed", c.Stats().Freed)
	}
	// Output:
	// rank 0 freed 0
	// rank 1 freed 20
	// rank 2 freed 40
	// rank 3 freed 60
}

package command

import (
	"fmt"
	"strings"
	"testing"
)

// TestLabFrames writes for how long the page stands still at most while a dial moves and
// the workers compute, five times.
func TestLabFrames(t *testing.T) {
	out := numbers(t, "frames.txt")
	c := openLab(t, "sample=gpt2&policies="+strings.Join(contenderNames(), ";"))
	settled(c)
	c.do("Performance.enable", map[string]any{"timeDomain": "threadTicks"})
	fmt.Fprintln(out, "gpt2 under all policies; the limit is moved 40 times and rests three times: frames, longest time between two (ms), tasks of the page above 50 ms, the longest of them (ms), processor time of the page (ms), all in (ms)")
	for range 5 {
		before := processor(c)
		var saw struct{ Frames, Gap, Tasks, Task, Took float64 }
		c.eval(`(async () => {
			const tasks = [], frames = [], seer = new PerformanceObserver((l) => tasks.push(...l.getEntries().map((e) => e.duration))), began = performance.now();
			seer.observe({ type: "longtask" });
			let going = true;
			const frame = (t) => { frames.push(t); if (going) requestAnimationFrame(frame); };
			requestAnimationFrame(frame);
			const dial = document.querySelector("[name=limit]");
			for (let k = 40; k < 200; k += 4) {
				dial.value = k;
				dial.dispatchEvent(new Event("input"));
				await new Promise((done) => setTimeout(done, k % 40 ? 50 : 1000));
			}
			while (document.querySelector(".recording").ariaBusy === "true") await new Promise((done) => setTimeout(done, 50));
			going = false;
			await new Promise((done) => setTimeout(done, 100));
			return { frames: frames.length, gap: Math.max(...frames.slice(1).map((t, i) => t - frames[i])), tasks: tasks.length, task: Math.max(0, ...tasks), took: performance.now() - began };
		})()`, &saw)
		fmt.Fprintf(out, "%5.0f %6.1f %3.0f %6.1f %6.0f %7.0f\n", saw.Frames, saw.Gap, saw.Tasks, saw.Task, 1e3*(processor(c)-before), saw.Took)
	}
}

// processor is the processor time that the page's main thread has taken, in seconds.
func processor(c *chromium) float64 {
	c.t.Helper()
	var all struct {
		Metrics []struct {
			Name  string
			Value float64
		}
	}
	c.must(c.session, "Performance.getMetrics", nil, &all)
	for _, m := range all.Metrics {
		if m.Name == "TaskDuration" {
			return m.Value
		}
	}
	c.t.Fatal("the browser does not say how long its tasks took")
	return 0
}

// TestLabPictures takes pictures of the page, for results/, at three widths.
func TestLabPictures(t *testing.T) {
	for _, p := range []struct {
		name, link, colours string
		width, height       int
	}{
		{"begin", "", "light", 1280, 620},
		{"wide", "sample=gpt2&limit=2x&why=0,3", "light", 1280, 900},
		{"tablet", "sample=gpt2&limit=2x&chart=front", "light", 768, 1500},
		{"night", "sample=mlp&limit=2x&rule=live+%3E+0.9*limit&name=mine&on=1", "dark", 390, 844},
	} {
		out := numbers(t, p.name+".webp")
		c := openLab(t, p.link)
		c.screen(p.width, p.width < 500, map[string]string{"color-scheme": p.colours})
		c.do("Emulation.setDeviceMetricsOverride", map[string]any{"width": p.width, "height": p.height, "deviceScaleFactor": 1, "mobile": p.width < 500})
		if p.link != "" {
			c.until("lab.recording")
			settled(c)
		}
		var shot struct{ Data []byte }
		c.must(c.session, "Page.captureScreenshot", map[string]any{"format": "webp", "quality": 70}, &shot)
		if _, err := out.Write(shot.Data); err != nil {
			t.Fatal(err)
		}
	}
}

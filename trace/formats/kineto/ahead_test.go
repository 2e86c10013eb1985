package kineto

import (
	"fmt"
	"strings"
	"testing"

	"github.com/eagergc/eagergc/trace"
	"github.com/eagergc/eagergc/trace/formats/recording"
)

// profileOf is a profile of launches, jobs and waits: "launch id at", "job id from to"
// and "wait from to", in us.
func profileOf(lines ...string) string {
	var events []string
	for _, line := range lines {
		var id, from, to int
		switch {
		case scan(line, "launch %d %d", &id, &from):
			events = append(events, fmt.Sprintf(`{"ph":"X","cat":"cuda_runtime","name":"cudaLaunchKernel","tid":1,"ts":%d,"dur":1,"args":{"correlation":%d}}`, from, id))
		case scan(line, "job %d %d %d", &id, &from, &to):
			events = append(events, fmt.Sprintf(`{"args":{"stream":7,"correlation":%d},"ph":"X","cat":"kernel","name":"k","tid":7,"ts":%d,"dur":%d}`, id, from, to-from))
		case scan(line, "wait %d %d", &from, &to):
			events = append(events, fmt.Sprintf(`{"ph":"X","cat":"cuda_runtime","name":"cudaStreamSynchronize","tid":1,"ts":%d,"dur":%d,"args":{"correlation":99}}`, from, to-from))
		default:
			panic(line)
		}
	}
	return `{"schemaVersion":1,"traceEvents":[` + strings.Join(events, ",") + `]}`
}

func scan(line, form string, to ...any) bool {
	n, err := fmt.Sscanf(line, form, to...)
	return err == nil && n == len(to)
}

// How far the device is ahead: five jobs are queued one after the other, each for
// longer than the one before it. A launch takes 10 us.
func TestHowFarTheDeviceIsAhead(t *testing.T) {
	tr := mustRead(t, []byte(profileOf(
		"wait 0 1", "launch 1 100", "launch 2 120", "launch 3 140", "wait 160 510",
		"job 1 110 210", // begins as soon as it is launched: nothing before it is absorbed
		"job 2 210 310", // was queued for 80 us
		"job 3 310 500", // was queued for 160 us
		// The device idles from 700 to 800, since launch 5 comes late: it absorbs nothing, nor do the jobs before it.
		"launch 4 600", "job 4 610 700", "launch 5 790", "wait 795 900", "job 5 800 890",
		// No wait is for this launch.
		"launch 6 950", "job 6 960 2000", "wait 1000 1001",
	)))
	var got []string
	for _, e := range tr.Events {
		if e.Kind == trace.Mark && tr.Label(e) == trace.AheadLabel {
			got = append(got, fmt.Sprintf("%d: %v", e.Time/1000, e.Duration))
		}
	}
	if text := strings.Join(got, ", "); text != "100: 0s, 100: 80µs, 120: 160µs, 140: 350µs, 790: 105µs" {
		t.Errorf("%s", text)
	}
}

// Without the jobs of a device a trace does not tell.
func TestNothingIsKnownWithoutJobs(t *testing.T) {
	tr := mustRead(t, []byte(profileOf("launch 1 100", "wait 160 510")))
	for _, e := range tr.Events {
		if e.Kind == trace.Mark {
			t.Errorf("%s", recording.Text(tr, e))
		}
	}
}

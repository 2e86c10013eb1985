package main

import (
	"fmt"
	"math/rand/v2"
	"net/url"
	"strings"
	"time"
)

// A program is a server that others wrote, and the requests of its clients. A way of it is the end
// of a binary's name and variables of its environment, such as import+EAGERGC_TRIM=off. In these,
// args and env, {port} and {next} are free ports, {dir} is an empty folder and {bundle} is the folder
// of -programs.
type program struct {
	name, ways string
	args, env  string
	ready      string  // the path that answers once the program serves
	device     string  // the path that tells, in JSON, the bytes in_use on a GPU; "" without one
	rate       float64 // requests a second: about 60 % of what two cores of the results' machine serve
	next       func(*rand.Rand) request
}

// A request with a body is a POST.
type request struct{ path, body string }

const (
	programsFile = "programs.csv"
	vectors      = "-addr=127.0.0.1:{port} -model={dir}"
	ticks        = "plain+TICK=100ms,plain+TICK=1s,import,import+EAGERGC_TRIM=off"
	remedy       = "plain+IMGPROXY_FREE_MEMORY_INTERVAL=10" // imgproxy's default: a collection and a trim each 10 s
	idle         = "import+EAGERGC=off"
	gpu          = "BACKEND=xla:{bundle}/plugin/xla_cuda_plugin.so MEMORY_FRACTION=0.05 CUDA_VISIBLE_DEVICES=0 GOMLX_NO_AUTO_INSTALL=1 GOPJRT_CUDA_CHECKS=0 XLA_FLAGS=--xla_gpu_cuda_data_dir=/usr/local/cuda"
	blocks       = "--storage.tsdb.min-block-duration=1m --storage.tsdb.max-block-duration=3m --storage.tsdb.retention.time=5m" // of a minute, in place of two hours
	pictures     = "IMGPROXY_BIND=127.0.0.1:{port} IMGPROXY_LOCAL_FILESYSTEM_ROOT={bundle}/images IMGPROXY_FREE_MEMORY_INTERVAL=86400"
)

// Wholes are the known programs. In imgproxyforgets one handler in ten leaves its picture to a
// finalizer. Embed is the server in its folder, on a GPU. In embedforgets hugot frees no tensor.
var wholes = []program{
	{name: "imgproxy", ways: "plain," + remedy + "," + ticks, env: pictures, ready: "/health", rate: 22, next: resize},
	{name: "imgproxyforgets", ways: idle + "," + idle + "+IMGPROXY_FREE_MEMORY_INTERVAL=10,import,import+EAGERGC_TRIM=off", env: pictures, ready: "/health", rate: 22, next: resize},
	{name: "rqlite", ways: "plain," + ticks, ready: "/readyz", rate: 680, next: query,
		args: "-node-id=1 -http-addr=127.0.0.1:{port} -raft-addr=127.0.0.1:{next} {dir}/data"},
	{name: "victoria", ways: "plain," + ticks, ready: "/health", rate: 1350, next: metrics,
		args: "-httpListenAddr=127.0.0.1:{port} -storageDataPath={dir} -memory.allowedBytes=512MiB -search.disableCache"},
	{name: "prometheus", ways: "plain," + ticks, ready: "/-/ready", rate: 240, next: samples,
		args: "--config.file={bundle}/prometheus.yml --web.listen-address=127.0.0.1:{port} --web.enable-otlp-receiver --storage.tsdb.path={dir}/data " + blocks},
	{name: "embed", ways: "plain,eager", args: vectors, env: gpu, ready: "/health", device: "/memory", rate: 100, next: texts},
	{name: "embedforgets", ways: "plain,eager", args: vectors, env: gpu, ready: "/health", device: "/memory", rate: 100, next: texts},
}

// choose returns a list of ways without those of other programs, WAY@PROGRAM.
func (p program) choose(ways string) string {
	var own []string
	for way := range strings.SplitSeq(ways, ",") {
		if way, of, some := strings.Cut(way, "@"); !some || of == p.name {
			own = append(own, way)
		}
	}
	return strings.Join(own, ",")
}

func pick(r *rand.Rand, from ...string) string { return from[r.IntN(len(from))] }

// resize asks imgproxy for a smaller picture.
func resize(r *rand.Rand) request {
	width := pick(r, "160", "320", "640", "1200")
	source := pick(r, "4000.jpg", "3000.jpg", "1920.jpg", "1920.jpg", "1600.webp", "1200.png", "800.jpg", "800.jpg")
	return request{path: fmt.Sprintf("/insecure/rs:fit:%s:%s/plain/local:///%s@%s", width, width, source, pick(r, "jpg", "jpg", "webp", "png"))}
}

// query replaces five rows, or sorts those of one kind.
func query(r *rand.Rand) request {
	if r.IntN(4) > 0 {
		return request{path: "/db/query?level=none&q=" + url.QueryEscape(fmt.Sprintf("SELECT id, body FROM t WHERE kind = %d ORDER BY body LIMIT 100", r.IntN(50)))}
	}
	rows := []string{`"CREATE TABLE IF NOT EXISTS t (id INTEGER PRIMARY KEY, kind INTEGER, body TEXT)"`, `"CREATE INDEX IF NOT EXISTS kinds ON t (kind)"`}
	for range 5 {
		body := strings.Repeat(fmt.Sprintf("%016x", r.Uint64()), 1+r.IntN(60))
		rows = append(rows, fmt.Sprintf(`["REPLACE INTO t VALUES (?, ?, ?)", %d, %d, "%s"]`, r.IntN(5000), r.IntN(50), body))
	}
	return request{"/db/execute", "[" + strings.Join(rows, ",") + "]"}
}

// rates asks for the sum of the rates of some counters since then, a value each step seconds.
func rates(of string, since time.Duration, step int) request {
	now, q := time.Now(), fmt.Sprintf("sum(rate(%s[30s])) by (zone)", of)
	return request{path: fmt.Sprintf("/api/v1/query_range?query=%s&start=%d&end=%d&step=%d", url.QueryEscape(q), now.Add(-since).Unix(), now.Unix(), step)}
}

// metrics adds a sample to each of 400 series, or sums the rates of 20 in the last minute.
func metrics(r *rand.Rand) request {
	if r.IntN(3) == 0 {
		return rates(fmt.Sprintf(`m%d{host="h%d"}`, r.IntN(20), r.IntN(100)), time.Minute, 5)
	}
	var b strings.Builder
	host := r.IntN(100)
	for i := range 400 {
		fmt.Fprintf(&b, "m%d{host=\"h%d\",zone=\"z%d\",part=\"p%d\"} %d\n", i%20, host, host%5, i/20, r.IntN(1e6))
	}
	return request{"/api/v1/import/prometheus", b.String()}
}

// samples adds a sample to each of 200 counters of a host, or sums the rates of 20 in the last minute.
// One request in 60 sums those of all hosts in the last three minutes, most of which lie in mapped
// files. A host has new counters in each minute, as after an update of what runs there. A counter
// follows from the time alone, so samples of the same millisecond agree.
func samples(r *rand.Rand) request {
	ms, host := time.Now().UnixMilli(), r.IntN(100)
	switch n := r.IntN(60); {
	case n == 0:
		return rates(fmt.Sprintf("m%d_total", r.IntN(10)), 3*time.Minute, 15)
	case n < 20:
		return rates(fmt.Sprintf(`m%d_total{job="h%d"}`, r.IntN(10), host), time.Minute, 5)
	}
	run := (ms/1000 + int64(host)) / 60 % 1000
	counters := make([]string, 10)
	for m := range counters {
		points := make([]string, 20)
		for p := range points {
			points[p] = fmt.Sprintf(`{"timeUnixNano": "%d000000", "asInt": "%d", "attributes": [{"key": "zone", "value": {"stringValue": "z%d"}}, {"key": "part", "value": {"stringValue": "p%d"}}, {"key": "run", "value": {"stringValue": "r%d"}}]}`,
				ms, ms%1e9*int64(20*m+p+1)/1000, host%5, p, run)
		}
		counters[m] = fmt.Sprintf(`{"name": "m%d", "sum": {"aggregationTemporality": 2, "isMonotonic": true, "dataPoints": [%s]}}`, m, strings.Join(points, ","))
	}
	return request{"/api/v1/otlp/v1/metrics", fmt.Sprintf(`{"resourceMetrics": [{"resource": {"attributes": [{"key": "service.name", "value": {"stringValue": "h%d"}}]}, "scopeMetrics": [{"metrics": [%s]}]}]}`, host, strings.Join(counters, ","))}
}

// texts asks for the vectors of 8 to 32 texts of 3 to 120 words.
func texts(r *rand.Rand) request {
	all := make([]string, 8+r.IntN(25))
	for i := range all {
		for range 4 << r.IntN(6) * 15 / 16 {
			all[i] += fmt.Sprintf("w%d ", r.IntN(8000))
		}
	}
	return request{"/embed", fmt.Sprintf(`{"texts": ["%s"]}`, strings.Join(all, `", "`))}
}

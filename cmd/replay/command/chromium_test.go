package command

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// A chromium is a browser that a test drives, by the DevTools protocol over a pipe.
type chromium struct {
	t       testing.TB
	to      *os.File
	session string // of the one page
	pid     int    // of the browser

	mu       sync.Mutex
	next     int
	waiting  map[int]chan json.RawMessage
	console  []string // what the page said, and errors nobody caught
	requests []string // but for data: and blob:
}

// newChromium starts the browser with an empty page, or skips the test without a browser.
func newChromium(t testing.TB) *chromium {
	t.Helper()
	path, err := exec.LookPath("chromium")
	if err != nil {
		t.Skip("no chromium on this machine:", err)
	}
	in, to, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	from, out, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(path, "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
		"--disable-component-update", "--disable-sync", "--remote-debugging-pipe", "--user-data-dir="+t.TempDir(), "about:blank")
	cmd.ExtraFiles = []*os.File{in, out}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	in.Close()
	out.Close()
	c := &chromium{t: t, to: to, pid: cmd.Process.Pid, waiting: make(map[int]chan json.RawMessage)}
	go c.listen(bufio.NewReaderSize(from, 1<<20))
	t.Cleanup(func() {
		c.send("", "Browser.close", nil)
		to.Close()
		done := make(chan struct{})
		go func() { _ = cmd.Wait(); close(done) }()
		select {
		case <-done:
		case <-time.After(20 * time.Second):
			_ = cmd.Process.Kill()
			<-done
		}
		from.Close()
	})
	var target struct{ TargetID string }
	c.must("", "Target.createTarget", map[string]any{"url": "about:blank"}, &target)
	var attached struct{ SessionID string }
	c.must("", "Target.attachToTarget", map[string]any{"targetId": target.TargetID, "flatten": true}, &attached)
	c.session = attached.SessionID
	for _, domain := range []string{"Page", "Runtime", "Network", "Log"} {
		c.must(c.session, domain+".enable", nil, nil)
	}
	return c
}

// listen passes answers to their waiters, and keeps the messages of the page.
func (c *chromium) listen(from *bufio.Reader) {
	for {
		text, err := from.ReadBytes(0)
		if err != nil {
			return
		}
		var m struct {
			ID            int
			Method        string
			Result, Error json.RawMessage
			Params        struct {
				Args             []struct{ Value any }
				ExceptionDetails struct {
					Text      string
					Exception struct{ Description string }
				}
				Entry   struct{ Text string }
				Request struct{ URL string }
			}
		}
		_ = json.Unmarshal(text[:len(text)-1], &m) // of another form: nothing that is waited for
		c.mu.Lock()
		switch {
		case m.ID != 0:
			answer := m.Result
			if m.Error != nil {
				answer = json.RawMessage(`{"failed":` + string(m.Error) + `}`)
			}
			c.waiting[m.ID] <- answer
			delete(c.waiting, m.ID)
		case m.Method == "Runtime.consoleAPICalled":
			c.console = append(c.console, fmt.Sprint(m.Params.Args))
		case m.Method == "Runtime.exceptionThrown":
			c.console = append(c.console, m.Params.ExceptionDetails.Text+" "+m.Params.ExceptionDetails.Exception.Description)
		case m.Method == "Log.entryAdded":
			c.console = append(c.console, m.Params.Entry.Text)
		case m.Method == "Network.requestWillBeSent":
			if u := m.Params.Request.URL; !strings.HasPrefix(u, "data:") && !strings.HasPrefix(u, "blob:") {
				c.requests = append(c.requests, u)
			}
		}
		c.mu.Unlock()
	}
}

func (c *chromium) send(session, method string, params any) chan json.RawMessage {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.next++
	answer := make(chan json.RawMessage, 1)
	c.waiting[c.next] = answer
	command := map[string]any{"id": c.next, "method": method}
	if session != "" {
		command["sessionId"] = session
	}
	if params != nil {
		command["params"] = params
	}
	text, err := json.Marshal(command)
	if err != nil {
		panic(err)
	}
	_, _ = c.to.Write(append(text, 0)) // a browser that is gone answers nothing: who waits sees it
	return answer
}

// must sends a command and reads its answer.
func (c *chromium) must(session, method string, params, result any) {
	c.t.Helper()
	select {
	case answer := <-c.send(session, method, params):
		if strings.HasPrefix(string(answer), `{"failed"`) {
			c.t.Fatalf("%s: %s", method, answer)
		}
		if result != nil {
			if err := json.Unmarshal(answer, result); err != nil {
				c.t.Fatalf("%s: %v", method, err)
			}
		}
	case <-time.After(5 * time.Minute):
		c.t.Fatalf("%s: no answer", method)
	}
}

func (c *chromium) do(method string, params map[string]any) {
	c.t.Helper()
	c.must(c.session, method, params, nil)
}

// open goes to a page.
func (c *chromium) open(url string) { c.t.Helper(); c.do("Page.navigate", map[string]any{"url": url}) }

// eval returns the value of an expression, or of the promise that it is.
func (c *chromium) eval(script string, result any) {
	c.t.Helper()
	var out struct {
		Result           struct{ Value json.RawMessage }
		ExceptionDetails *struct {
			Text      string
			Exception struct{ Description string }
		}
	}
	c.must(c.session, "Runtime.evaluate", map[string]any{"expression": script, "awaitPromise": true, "returnByValue": true}, &out)
	if e := out.ExceptionDetails; e != nil {
		c.t.Fatalf("%.200s: %s %s", script, e.Text, e.Exception.Description)
	}
	if result != nil {
		if err := json.Unmarshal(out.Result.Value, result); err != nil {
			c.t.Fatalf("%.200s: %s: %v", script, out.Result.Value, err)
		}
	}
}

// untilSeconds is the longest wait of until. A busy machine takes many times as long as an idle
// one.
const untilSeconds = 180

// until waits for an expression to be true.
func (c *chromium) until(script string) {
	c.t.Helper()
	for end := time.Now().Add(time.Duration(untilSeconds) * time.Second); ; time.Sleep(50 * time.Millisecond) {
		var ok bool
		c.eval("Boolean("+script+")", &ok)
		if ok {
			return
		}
		if time.Now().After(end) || c.broken() {
			var said string
			c.eval("document.body.innerText.slice(0, 3000)", &said)
			c.t.Fatalf("never true: %s\n%v\n%s", script, c.console, said)
		}
	}
}

// broken reports an error in the page that was not caught; the test would wait until its end.
func (c *chromium) broken() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.ContainsFunc(c.console, func(said string) bool { return strings.HasPrefix(said, "Uncaught") })
}

// drop drops files on the page. The browser begins a drop with a dragover of its own.
func (c *chromium) drop(files ...string) {
	c.t.Helper()
	for i, file := range files {
		var err error
		if files[i], err = filepath.Abs(file); err != nil {
			c.t.Fatal(err)
		}
	}
	for _, step := range []string{"dragEnter", "dragOver", "drop"} {
		c.do("Input.dispatchDragEvent", map[string]any{"type": step, "x": 200, "y": 200,
			"data": map[string]any{"items": []any{}, "files": files, "dragOperationsMask": 1}})
	}
}

// reload loads the page again, by way of an empty one: to a question under way while a page
// ends the browser may answer with an error.
func (c *chromium) reload() {
	c.t.Helper()
	var url string
	c.eval("location.href", &url)
	c.open("about:blank")
	c.open(url)
	c.until("globalThis.lab?.open")
}

// screen makes the page as wide as a device's.
func (c *chromium) screen(width int) {
	c.t.Helper()
	c.do("Emulation.setDeviceMetricsOverride", map[string]any{"width": width, "height": 844, "deviceScaleFactor": 1, "mobile": false})
}

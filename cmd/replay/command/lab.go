package command

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"os/exec"
	"path"
	"runtime"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/eagergc/eagergc/trace/formats/recording"
)

func newLab() *cobra.Command {
	var (
		out, address string
		quiet        bool
	)
	cmd := &cobra.Command{
		Use:   "lab [-o lab.html]",
		Short: "Open a page that runs the simulator: drop a recording in it, move the limit",
		Long: `lab opens a page in the browser that runs the simulator as WebAssembly. Drop a
recording on the page, or a memory snapshot with the profile of its run, or choose a
built-in recording. Then move the limit, the cost of a cycle and the price of memory.
Nothing is uploaded.

lab serves the page to this machine alone, until Ctrl-C. With -o it writes the page to
a file instead. The file is complete: it works from a folder, without a network.

lab builds the program of the page from the source of this replay with the go command,
which takes a minute the first time. On a machine without Go, use a file that lab -o
has written elsewhere.`,
		Example: `  replay lab
  replay lab -o lab.html`,
		Args: files(0, 0, ""),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := canWrite(out); err != nil {
				return err
			}
			if at, err := netip.ParseAddrPort(address); err != nil || !at.Addr().IsLoopback() {
				return fmt.Errorf("--listen %s: want an address of this machine, such as 127.0.0.1:8080", address)
			}
			bar := newProgress(cmd, "building the simulator for the browser")
			b, err := buildLab(cmd.Context())
			bar.stop()
			if err != nil {
				return err
			}
			if out != "" {
				return writeLab(cmd, b, out)
			}
			return serveLab(cmd, b, address, !quiet)
		},
	}
	f := cmd.Flags()
	f.StringVarP(&out, "output", "o", "", "`file` to write instead of serving the page")
	f.StringVar(&address, "listen", "127.0.0.1:0", "`address` of this machine to serve at; port 0 is any free port")
	f.BoolVar(&quiet, "no-browser", false, "serve the page without opening a browser")
	return cmd
}

func writeLab(cmd *cobra.Command, b *labBuild, out string) error {
	p, err := labPage(b, true)
	if err != nil {
		return err
	}
	if err := writeFile(out, p.write); err != nil {
		return err
	}
	fmt.Fprintf(cmd.ErrOrStderr(), "replay: wrote %s\n", recording.Plain(out))
	return nil
}

// serveLab serves the page to this machine until the context ends.
func serveLab(cmd *cobra.Command, b *labBuild, address string, browse bool) error {
	p, err := labPage(b, false)
	if err != nil {
		return err
	}
	var text strings.Builder
	if err := p.write(&text); err != nil {
		return err
	}
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return err
	}
	at := listener.Addr().String()
	server := &http.Server{Handler: labHandler(b, text.String(), at), ReadHeaderTimeout: 10 * time.Second}
	url := "http://" + at + "/"
	fmt.Fprintf(cmd.ErrOrStderr(), "replay: the lab is at %s until Ctrl-C\n", url)
	if browse {
		if err := browser(url).Start(); err != nil {
			fmt.Fprintf(cmd.ErrOrStderr(), "replay: no browser opened (%v)\n", err)
		}
	}
	stop := context.AfterFunc(cmd.Context(), func() { server.Close() })
	defer stop()
	if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// labHandler serves the page and its parts. It checks the host name of a request, so that no
// other page reaches it under another name.
func labHandler(b *labBuild, page, host string) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /{$}", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		_, _ = io.WriteString(w, page)
	})
	mux.HandleFunc("GET /parts/{name}", func(w http.ResponseWriter, r *http.Request) {
		data, err := b.part(path.Base(r.PathValue("name")))
		if err != nil {
			http.NotFound(w, r)
			return
		}
		w.Header().Set("Content-Type", "application/octet-stream")
		_, _ = w.Write(data)
	})
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Host != host {
			http.Error(w, "not this host", http.StatusForbidden)
			return
		}
		w.Header().Set("X-Content-Type-Options", "nosniff")
		w.Header().Set("Referrer-Policy", "no-referrer")
		mux.ServeHTTP(w, r)
	})
}

// browser returns the command that opens a page in the user's browser.
func browser(url string) *exec.Cmd {
	switch runtime.GOOS {
	case "darwin":
		return exec.Command("open", url)
	case "windows":
		return exec.Command("rundll32", "url.dll,FileProtocolHandler", url)
	}
	return exec.Command("xdg-open", url)
}

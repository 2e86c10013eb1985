package command

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/netip"
	"net/textproto"
	"os/exec"
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
		Long: `lab opens a page in the browser that runs the simulator itself, as WebAssembly.
Drop a recording on it, or choose one that is built in; move the limit, the cost of
a cycle and the price of memory; write a policy of your own. Nothing is uploaded.

The page is served to this machine alone, until Ctrl-C. With -o it is written as
one file instead, which needs nothing else: it works from a folder, without a
network, and can be passed on.

The program in the page is built from the source of this replay with the go
command, which takes a minute the first time. Where there is no Go, use a lab.html
that was written elsewhere.`,
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
			stop := saying(cmd.ErrOrStderr(), "building the simulator for the browser")
			b, err := buildLab(cmd.Context())
			stop()
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
	f.StringVar(&address, "listen", "127.0.0.1:0", "`address` to serve at, of this machine; port 0 is any that is free")
	f.BoolVar(&quiet, "no-browser", false, "serve the page, and open no browser")
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
	s := &labServer{b: b, page: text.String(), host: listener.Addr().String()}
	url := "http://" + s.host + "/"
	fmt.Fprintf(cmd.ErrOrStderr(), "replay: the lab is at %s until Ctrl-C\n", url)
	if browse {
		if err := browser(url).Start(); err != nil {
			fmt.Fprintf(cmd.ErrOrStderr(), "replay: no browser opened (%v)\n", err)
		}
	}
	stop := context.AfterFunc(cmd.Context(), func() { listener.Close() })
	defer stop()
	if err := s.serve(listener); cmd.Context().Err() == nil {
		return err
	}
	return nil
}

// A labServer serves the page and its parts. It speaks as much HTTP as a browser needs for
// that: package net/http is a third of what a first build of replay compiles.
type labServer struct {
	b          *labBuild
	page, host string
}

func (s *labServer) serve(listener net.Listener) error {
	for {
		c, err := listener.Accept()
		if err != nil {
			return err
		}
		go s.answer(c)
	}
}

// answer answers one request, and closes the connection.
func (s *labServer) answer(c net.Conn) {
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(time.Minute))
	const most = 64 << 10 // bytes of a request
	r := textproto.NewReader(bufio.NewReader(io.LimitReader(c, most)))
	line, err := r.ReadLine()
	if err != nil {
		return
	}
	header, err := r.ReadMIMEHeader()
	if err != nil {
		return
	}
	method, target, _ := strings.Cut(line, " ")
	target, _, _ = strings.Cut(target, " ")
	status, kind, body := s.find(method, target, header.Get("Host"))
	fmt.Fprintf(c, "HTTP/1.1 %s\r\nContent-Type: %s\r\nContent-Length: %d\r\nX-Content-Type-Options: nosniff\r\nReferrer-Policy: no-referrer\r\nConnection: close\r\n\r\n", status, kind, len(body))
	_, _ = c.Write(body) // the browser is gone: nobody to tell
}

// find answers to the server's own name only, so that no other page reaches it by a name
// that leads here.
func (s *labServer) find(method, target, host string) (status, kind string, body []byte) {
	const text = "text/plain; charset=utf-8"
	name, isPart := strings.CutPrefix(target, "/parts/")
	switch {
	case host != s.host:
		return "403 Forbidden", text, []byte("not this host\n")
	case method != "GET":
		return "405 Method Not Allowed", text, []byte("read-only\n")
	case target == "/":
		return "200 OK", "text/html; charset=utf-8", []byte(s.page)
	case isPart:
		if data, err := s.b.part(name); err == nil {
			return "200 OK", "application/octet-stream", data
		}
	}
	return "404 Not Found", text, []byte("not here\n")
}

// browser is the command that opens a page in the user's browser.
func browser(url string) *exec.Cmd {
	switch runtime.GOOS {
	case "darwin":
		return exec.Command("open", url)
	case "windows":
		return exec.Command("rundll32", "url.dll,FileProtocolHandler", url)
	}
	return exec.Command("xdg-open", url)
}

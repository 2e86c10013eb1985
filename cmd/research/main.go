// Command research describes the recordings on which policies are judged.
//
//	research corpus [-o FOLDER] [RECORDING...]
//		describes each recording by a card of statistics
//
// A RECORDING is a file that `replay import` reads or the name of a built-in recording. The name
// all means all built-in recordings. The default is the recordings of `replay compare`. The report
// is Markdown. With -o, research also writes the values behind it and a picture.
package main

import (
	"flag"
	"fmt"
	"io"
	"os"

	"github.com/eagergc/eagergc/trace/formats/samples"
)

func main() {
	if err := run(os.Args[1:], os.Stdout, os.Stderr); err != nil {
		fmt.Fprintln(os.Stderr, "research:", err)
		os.Exit(1)
	}
}

func run(args []string, stdout, stderr io.Writer) error {
	if len(args) == 0 || args[0] != "corpus" {
		return fmt.Errorf("usage: research corpus [-o FOLDER] [RECORDING...]")
	}
	flags := flag.NewFlagSet("research", flag.ContinueOnError)
	flags.SetOutput(stderr)
	out := flags.String("o", "", "`folder` for the report and its data; if empty, print the report")
	if err := flags.Parse(args[1:]); err != nil {
		return err
	}
	names := flags.Args()
	if len(names) == 0 {
		names = append(samples.Names(), samples.Programs()...)
	}
	programs, err := load(names)
	if err != nil {
		return err
	}
	files, err := corpus(programs)
	if err != nil {
		return err
	}
	return files.save(*out, stdout)
}

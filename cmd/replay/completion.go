package main

import (
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"
)

// addCompletion gives root its command completion, whose install puts files where
// shells and man look for them.
func addCompletion(root *cobra.Command) {
	root.InitDefaultCompletionCmd()
	completion, _, err := root.Find([]string{"completion"})
	if err != nil {
		panic(err) // the line above made it
	}
	completion.AddCommand(&cobra.Command{
		Use:   "install",
		Short: "Install completion for bash, zsh and fish, and the man pages",
		Long: `install writes completion for bash, zsh and fish and a man page for each command
below $XDG_DATA_HOME (~/.local/share if it is not set), where bash-completion,
fish and man look without more settings. For zsh, add the folder that it names to
fpath.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			share := os.Getenv("XDG_DATA_HOME")
			if share == "" {
				home, err := os.UserHomeDir()
				if err != nil {
					return err
				}
				share = filepath.Join(home, ".local", "share")
			}
			return install(root, share, cmd.ErrOrStderr())
		},
	})
}

// install writes the files below share.
func install(root *cobra.Command, share string, stderr io.Writer) error {
	for _, shell := range []struct {
		folder, file string
		write        func(io.Writer) error
	}{
		{"bash-completion/completions", "replay", func(w io.Writer) error { return root.GenBashCompletionV2(w, true) }},
		{"zsh/site-functions", "_replay", root.GenZshCompletion},
		{"fish/vendor_completions.d", "replay.fish", func(w io.Writer) error { return root.GenFishCompletion(w, true) }},
	} {
		dir, err := openFolder(filepath.Join(share, filepath.FromSlash(shell.folder)))
		if err != nil {
			return err
		}
		if err := dir.write(shell.file, shell.write); err != nil {
			return err
		}
		fmt.Fprintf(stderr, "replay: wrote %s\n", filepath.Join(dir.path, shell.file))
	}
	pages := filepath.Join(share, "man", "man1")
	if err := os.MkdirAll(pages, 0o755); err != nil {
		return err
	}
	root.DisableAutoGenTag = true // which would be the date
	if err := doc.GenManTree(root, &doc.GenManHeader{Section: "1", Source: "replay " + version()}, pages); err != nil {
		return err
	}
	fmt.Fprintf(stderr, "replay: wrote man pages to %s\n", pages)
	return nil
}

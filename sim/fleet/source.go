package fleet

import (
	"bufio"
	"cmp"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// A Source is where a recording can be read. Name is what the job is called in the
// answer: the same on every machine.
type Source struct {
	Name  string
	Bytes int64 // about
	Open  func() (File, error)
}

// A File is what a [Source] opens.
type File = io.ReadCloser

// Sources lists the recordings of a folder, with all folders in it, or those that a list
// names. A list has a path to a line, from the list's own folder; lines that are empty
// or begin with # do not count. In a folder, names that begin with a dot or end in
// .partial are left out. Jobs are called by their path in the folder, with slashes, or as
// the list calls them. Two of one name are an error.
func Sources(path string) ([]Source, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	var all []Source
	if info.IsDir() {
		all, err = inFolder(path)
	} else {
		all, err = inList(path)
	}
	slices.SortFunc(all, func(a, b Source) int { return cmp.Compare(a.Name, b.Name) })
	return all, err
}

func inFolder(root string) (all []Source, err error) {
	err = filepath.WalkDir(root, func(path string, e fs.DirEntry, err error) error {
		hidden := path != root && strings.HasPrefix(e.Name(), ".")
		switch {
		case err != nil:
			return err
		case e.IsDir() && hidden:
			return fs.SkipDir
		case hidden || !e.Type().IsRegular() || filepath.Ext(path) == partialEnding:
			return nil
		}
		info, err := e.Info()
		if err != nil {
			return err
		}
		name, err := filepath.Rel(root, path)
		if err != nil {
			return err
		}
		all = append(all, fileSource(filepath.ToSlash(name), path, info.Size()))
		return nil
	})
	return all, err
}

func inList(list string) ([]Source, error) {
	file, err := os.Open(list)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	var all []Source
	seen := make(map[string]int)
	lines := bufio.NewScanner(file)
	for n := 1; lines.Scan(); n++ {
		name := strings.TrimSpace(lines.Text())
		if name == "" || strings.HasPrefix(name, "#") {
			continue
		}
		if !isText(name) {
			return nil, fmt.Errorf("%s:%d: want a list with a path to a line", list, n)
		}
		if first, ok := seen[name]; ok {
			return nil, fmt.Errorf("%s:%d: %s is in line %d, too", list, n, name, first)
		}
		seen[name] = n
		path := name
		if !filepath.IsAbs(path) {
			path = filepath.Join(filepath.Dir(list), path)
		}
		var bytes int64
		if info, err := os.Stat(path); err == nil { // else its job says why it cannot be read
			bytes = info.Size()
		}
		all = append(all, fileSource(name, path, bytes))
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("%s: %w", list, err)
	}
	return all, nil
}

func isText(line string) bool {
	return !strings.ContainsFunc(line, func(r rune) bool { return r < ' ' || r == '\uFFFD' })
}

func fileSource(name, path string, bytes int64) Source {
	return Source{Name: name, Bytes: bytes, Open: func() (File, error) { return os.Open(path) }}
}

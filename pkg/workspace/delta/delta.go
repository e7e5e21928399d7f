// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// Package delta is the format of what a run changed in its workspace: one file, which is written when the run is over (package
// changes), and read by whoever builds a commit of it (Read).
//
// # What a delta contains
//
// The changes by path, with the content of each new file, and so much of the commit that the run began with that a commit can be
// built on it without the repository: the commit itself, and its folders along the changed paths. Their names are the hashes of their
// content, so a delta can be checked against the name of the commit alone: a worker cannot make up what its run began with.
//
// # The file
//
// A tar archive, compressed with gzip. Its first member is delta.json, a Header. Each other member is an object of git, named by kind
// and name, such as blob/8ab686eafeb1f44702738c8b0f24f2567c36da6d, with the object's content alone. What does not belong in it makes
// it unreadable.
package delta

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"path"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/platform-ai/platform/pkg/workspace/filename"
	"github.com/platform-ai/platform/pkg/workspace/gitobject"
)

const (
	// Version is that of the format.
	Version = 1
	// MaxChanges is how many files a delta may change.
	MaxChanges = 20_000
	// MaxObjects is how many bytes its objects may have together. They are in memory where a commit is built.
	MaxObjects = 64 << 20
	// headerName is the first member of the archive.
	headerName = "delta.json"
	// maxHeader bounds the header, in bytes, and maxArchive the whole archive.
	maxHeader  = 16 << 20
	maxArchive = maxHeader + MaxObjects + 64<<20
)

// ErrTooLarge is in the chain of the error for changes that exceed a limit, ErrInvalid for a file that is no delta, or one that
// contradicts itself.
var (
	ErrTooLarge = errors.New("the changes are too large")
	ErrInvalid  = errors.New("not a valid delta")
)

// Side is a file before or after a change. The zero Side means that there is none.
type Side struct {
	// Mode is that of git, such as 100644.
	Mode string `json:"mode,omitempty"`
	// ID is the name of the content.
	ID string `json:"id,omitempty"`
}

// Change is one changed file.
type Change struct {
	// Path is that of the file in the repository. It may have any bytes that git allows.
	Path string
	Was  Side
	Is   Side
}

// jsonChange is a Change in JSON, whose strings cannot have all bytes.
type jsonChange struct {
	Path    string `json:"path,omitempty"`
	RawPath []byte `json:"rawPath,omitempty"`
	Was     Side   `json:"was,omitzero"`
	Is      Side   `json:"is,omitzero"`
}

// MarshalJSON writes a path that is not UTF-8 as base64.
func (c Change) MarshalJSON() ([]byte, error) {
	j := jsonChange{Path: c.Path, Was: c.Was, Is: c.Is}
	if !utf8.ValidString(c.Path) {
		j.Path, j.RawPath = "", []byte(c.Path)
	}
	return json.Marshal(j)
}

// UnmarshalJSON reads what MarshalJSON writes.
func (c *Change) UnmarshalJSON(raw []byte) error {
	var j jsonChange
	if err := json.Unmarshal(raw, &j); err != nil {
		return err
	}
	*c = Change{Path: j.Path, Was: j.Was, Is: j.Is}
	if len(j.RawPath) > 0 {
		c.Path = string(j.RawPath)
	}
	return nil
}

// Header describes a delta.
type Header struct {
	Version int `json:"version"`
	// Commit is what the run began with.
	Commit string `json:"commit"`
	// SubPath is the folder of the repository that was the workspace; empty for all of it.
	SubPath string `json:"subPath,omitempty"`
	// Changes are sorted by path, and each path is there once.
	Changes []Change `json:"changes"`
}

// Delta is a header with the objects that it needs, by name.
type Delta struct {
	Header
	Objects map[string]gitobject.Object
}

// Write writes the delta. The same delta gives the same bytes.
func (d *Delta) Write(to io.Writer) error {
	zipped := gzip.NewWriter(to)
	out := tar.NewWriter(zipped)
	header, err := json.Marshal(d.Header)
	if err != nil {
		return err
	}
	add := func(name string, data []byte) error {
		err := out.WriteHeader(&tar.Header{Name: name, Mode: 0o644, Size: int64(len(data)), ModTime: time.Unix(0, 0), Format: tar.FormatUSTAR})
		if err != nil {
			return err
		}
		_, err = out.Write(data)
		return err
	}
	if err := add(headerName, header); err != nil {
		return err
	}
	for _, id := range slices.Sorted(maps.Keys(d.Objects)) {
		o := d.Objects[id]
		if err := add(o.Kind+"/"+id, o.Data); err != nil {
			return err
		}
	}
	return errors.Join(out.Close(), zipped.Close())
}

// Read reads a delta and checks all of it: each object has the name that its content gives, each path is one that a workspace may
// have, and no content is missing. What it says about the commit is checked where the commit is built.
func Read(from io.Reader) (*Delta, error) {
	unzipped, err := gzip.NewReader(from)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrInvalid, err)
	}
	in := tar.NewReader(io.LimitReader(unzipped, maxArchive))
	d := &Delta{Objects: map[string]gitobject.Object{}}
	left := int64(MaxObjects)
	for first := true; ; first = false {
		h, err := in.Next()
		if errors.Is(err, io.EOF) && !first {
			return d, d.check()
		}
		if err != nil {
			return nil, fmt.Errorf("%w: %w", ErrInvalid, err)
		}
		if first {
			err = d.readHeader(h, in)
		} else if left -= h.Size; left < 0 {
			err = fmt.Errorf("%w: more than %d bytes", ErrTooLarge, MaxObjects)
		} else {
			err = d.readObject(h, in)
		}
		if err != nil {
			return nil, err
		}
	}
}

// Paths returns the paths of the changed files, in order. Nothing else of the delta is read or checked.
func Paths(from io.Reader) ([]string, error) {
	unzipped, err := gzip.NewReader(from)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrInvalid, err)
	}
	in, d := tar.NewReader(io.LimitReader(unzipped, maxHeader+tarBlock)), &Delta{}
	h, err := in.Next()
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrInvalid, err)
	}
	if err := d.readHeader(h, in); err != nil {
		return nil, err
	}
	paths := make([]string, 0, len(d.Changes))
	for _, c := range d.Changes {
		paths = append(paths, c.Path)
	}
	return paths, nil
}

// tarBlock is more than a tar file has before the content of its first member.
const tarBlock = 4096

func (d *Delta) readHeader(h *tar.Header, in io.Reader) error {
	if h.Name != headerName || h.Size > maxHeader {
		return fmt.Errorf("%w: it does not begin with %s", ErrInvalid, headerName)
	}
	read := json.NewDecoder(in)
	read.DisallowUnknownFields()
	if err := read.Decode(&d.Header); err != nil {
		return fmt.Errorf("%w: %s: %w", ErrInvalid, headerName, err)
	}
	if d.Version != Version {
		return fmt.Errorf("%w: version %d; %d can be read", ErrInvalid, d.Version, Version)
	}
	if len(d.Changes) > MaxChanges {
		return fmt.Errorf("%w: more than %d changed files", ErrTooLarge, MaxChanges)
	}
	return nil
}

func (d *Delta) readObject(h *tar.Header, in io.Reader) error {
	kind, id, ok := strings.Cut(h.Name, "/")
	if !ok || h.Typeflag != tar.TypeReg || kind != gitobject.Blob && kind != gitobject.Tree && kind != gitobject.Commit {
		return fmt.Errorf("%w: member %q", ErrInvalid, h.Name)
	}
	data, err := io.ReadAll(in)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrInvalid, err)
	}
	o := gitobject.Object{Kind: kind, Data: data}
	if _, twice := d.Objects[id]; twice || o.Name() != id {
		return fmt.Errorf("%w: member %q is there twice, or is not the hash of its content", ErrInvalid, h.Name)
	}
	d.Objects[id] = o
	return nil
}

func (d *Delta) check() error {
	before := ""
	for i, c := range d.Changes {
		switch {
		case i > 0 && c.Path <= before:
			return fmt.Errorf("%w: %q is not in its place", ErrInvalid, c.Path)
		case c.Is == c.Was:
			return fmt.Errorf("%w: %q does not change", ErrInvalid, c.Path)
		case d.SubPath != "" && !strings.HasPrefix(c.Path, d.SubPath+"/"):
			return fmt.Errorf("%w: %q is outside of %q", ErrInvalid, c.Path, d.SubPath)
		case c.Path != path.Clean(c.Path) || strings.Count(c.Path, "/") > filename.MaxDepth:
			return fmt.Errorf("%w: path %q", ErrInvalid, c.Path)
		}
		for name := range strings.SplitSeq(c.Path, "/") {
			if why := filename.Bad(name); why != "" && c.Is != (Side{}) {
				return fmt.Errorf("%w: %q %s", ErrInvalid, c.Path, why)
			}
		}
		if err := d.checkSide(c); err != nil {
			return err
		}
		before = c.Path
	}
	return nil
}

func (d *Delta) checkSide(c Change) error {
	if c.Is == (Side{}) {
		return nil
	}
	o, ok := d.Objects[c.Is.ID]
	if !ok || o.Kind != gitobject.Blob {
		return fmt.Errorf("%w: the content of %q is missing", ErrInvalid, c.Path)
	}
	switch c.Is.Mode {
	case gitobject.ModeFile, gitobject.ModeExecutable:
		return nil
	case gitobject.ModeLink:
		if len(o.Data) == 0 || bytes.IndexByte(o.Data, 0) >= 0 {
			return fmt.Errorf("%w: the target of the link %q", ErrInvalid, c.Path)
		}
		return nil
	}
	return fmt.Errorf("%w: %q has the mode %q", ErrInvalid, c.Path, c.Is.Mode)
}

// IsBinary reports whether git takes a content for binary: it has a zero byte near its beginning.
func IsBinary(data []byte) bool { return bytes.IndexByte(data[:min(len(data), 8000)], 0) >= 0 }

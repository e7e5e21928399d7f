// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// Package gitobject has the few formats of git that the platform writes itself: the names of objects, trees and commits. Reading a
// repository of a server is the matter of package repository.
//
// https://git-scm.com/docs/gitformat-commit-graph and https://git-scm.com/docs/git-hash-object describe the formats.
package gitobject

import (
	"bytes"
	"crypto/sha1" //nolint:gosec // the names of git's objects
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Kinds of objects.
const (
	Commit = "commit"
	Tree   = "tree"
	Blob   = "blob"
)

// Modes of the entries of a tree, as git writes them.
const (
	ModeFile       = "100644"
	ModeExecutable = "100755"
	ModeLink       = "120000"
	ModeFolder     = "40000"
	ModeSubmodule  = "160000"
)

// NameLength is the length of the name of an object, in hexadecimal digits.
const NameLength = 40

// ErrFormat is in the chain of the error for an object that git would not write.
var ErrFormat = errors.New("not an object as git writes it")

// Object is an object with its content.
type Object struct {
	Kind string
	Data []byte
}

// Name returns the name of the object, in lower-case hexadecimal digits.
func (o Object) Name() string {
	h := NewHash(o.Kind, int64(len(o.Data)))
	h.Write(o.Data)
	return hex.EncodeToString(h.Sum(nil))
}

// NewHash returns the hash whose sum is the name of an object, once its content was written.
func NewHash(kind string, size int64) hash.Hash {
	h := sha1.New()                                //nolint:gosec // the names of git's objects
	_, _ = fmt.Fprintf(h, "%s %d\x00", kind, size) // a hash takes everything
	return h
}

// Entry is one entry of a tree.
type Entry struct {
	Mode, Name string
	// ID is the name of the object, in hexadecimal digits.
	ID string
}

// ParseTree returns the entries of a tree.
func ParseTree(data []byte) ([]Entry, error) {
	var list []Entry
	for len(data) > 0 {
		mode, rest, ok := bytes.Cut(data, []byte(" "))
		name, rest, ok2 := bytes.Cut(rest, []byte{0})
		if !ok || !ok2 || len(rest) < NameLength/2 {
			return nil, fmt.Errorf("%w: a tree that is cut off", ErrFormat)
		}
		list = append(list, Entry{Mode: strings.TrimLeft(string(mode), "0"), Name: string(name), ID: hex.EncodeToString(rest[:NameLength/2])})
		data = rest[NameLength/2:]
	}
	return list, nil
}

// FormatTree returns the tree that has the entries, in git's order.
func FormatTree(entries []Entry) (Object, error) {
	list := slices.Clone(entries)
	slices.SortFunc(list, func(a, b Entry) int { return strings.Compare(sortName(a), sortName(b)) })
	var out bytes.Buffer
	for _, e := range list {
		id, err := hex.DecodeString(e.ID)
		if err != nil || len(id) != NameLength/2 {
			return Object{}, fmt.Errorf("%w: %q is not the name of an object", ErrFormat, e.ID)
		}
		fmt.Fprintf(&out, "%s %s\x00%s", e.Mode, e.Name, id)
	}
	return Object{Kind: Tree, Data: out.Bytes()}, nil
}

// sortName is what a tree is sorted by: folders as if their names ended with a slash.
func sortName(e Entry) string {
	if e.Mode == ModeFolder {
		return e.Name + "/"
	}
	return e.Name
}

// TreeOf returns the name of the tree of a commit, and ok false if the object is no commit.
func TreeOf(o Object) (id string, ok bool) {
	line, _, _ := bytes.Cut(o.Data, []byte("\n"))
	id, ok = strings.CutPrefix(string(line), "tree ")
	return id, ok && o.Kind == Commit && len(id) == NameLength
}

// Person is who made a commit.
type Person struct {
	Name, Email string
}

// FormatCommit returns a commit with one parent. The same arguments give the same commit.
func FormatCommit(tree, parent string, by Person, at time.Time, message string) Object {
	who := fmt.Sprintf("%s <%s> %s +0000", by.Name, by.Email, strconv.FormatInt(at.Unix(), 10))
	return Object{Kind: Commit, Data: fmt.Appendf(nil, "tree %s\nparent %s\nauthor %s\ncommitter %s\n\n%s\n", tree, parent, who, who, strings.TrimRight(message, "\n"))}
}

// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// Package filename says which names files of a workspace may have, when they are checked out and when they are published.
package filename

import (
	"fmt"
	"strings"
)

const (
	// MaxDepth is how deep folders may be nested.
	MaxDepth = 256
	// MaxLength is the longest name of a file, in bytes.
	MaxLength = 255
)

// Bad returns why no file of a workspace gets a name, as the end of a sentence; empty for one that is accepted.
func Bad(name string) string {
	switch {
	case name == "" || name == "." || name == "..":
		return "is not the name of a file"
	case strings.ContainsAny(name, "/\x00"):
		return "contains a character that no name of a file has"
	case len(name) > MaxLength:
		return fmt.Sprintf("is longer than %d bytes", MaxLength)
	case IsGit(name):
		return "is, or is taken by some system for, git's own folder"
	}
	return ""
}

// IsGit reports whether a name is that of git's own folder on some system. HFS+ ignores some characters and case; NTFS has short names,
// ignores dots and spaces at the end, and reads what follows a colon as a stream (git's core.protectHFS and core.protectNTFS).
func IsGit(name string) bool {
	plain := strings.ToLower(strings.Map(func(r rune) rune {
		switch {
		case r >= 0x200c && r <= 0x200f, r >= 0x202a && r <= 0x202e, r >= 0x206a && r <= 0x206f, r == 0xfeff:
			return -1
		}
		return r
	}, name))
	for part := range strings.SplitSeq(plain, `\`) {
		part, _, _ = strings.Cut(part, ":")
		part = strings.TrimRight(part, ". ")
		if part == ".git" || part == "git~1" {
			return true
		}
	}
	return false
}

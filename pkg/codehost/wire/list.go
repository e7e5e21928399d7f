// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"fmt"

	"github.com/platform-ai/platform/pkg/codehost"
)

const (
	// MaxPages bounds how many pages of a list are read.
	MaxPages = 400
	// PageSize is how many items a page has at most if strangers write the texts in it.
	PageSize = 50
	// LargePage is how many items a page has at most if their texts are short.
	LargePage = 100
	// maxTexts bounds how many bytes of texts a whole list has. Anybody may write as many comments as they like.
	maxTexts = 64 << 20
)

// List is a whole list whose items have texts of strangers.
type List[T any] struct {
	Items []T
	texts int
}

// Add adds an item with these texts in it. It returns an error for a list that is too long to be kept.
func (l *List[T]) Add(item T, texts ...string) error {
	for _, s := range texts {
		l.texts += len(s)
	}
	if l.texts > maxTexts {
		return fmt.Errorf("%w: it lists more than %d bytes of text", codehost.ErrUnavailable, maxTexts)
	}
	l.Items = append(l.Items, item)
	return nil
}

// TooMany is the error for a list that has no end.
func TooMany() error {
	return fmt.Errorf("%w: it lists more than %d pages", codehost.ErrUnavailable, MaxPages)
}

// Malformed is the error for an answer that lacks what a host of a kind has in it.
func Malformed(kind string) error {
	return fmt.Errorf("%w: it does not answer as %s does", codehost.ErrUnavailable, kind)
}

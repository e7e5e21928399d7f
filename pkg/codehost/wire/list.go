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

// Page returns a page of a list: what convert makes of the items of an answer, and whether there is a page after it.
func Page[S, T any](items []S, more bool, convert func(S) (T, error)) (codehost.Listed[T], error) {
	out := codehost.Listed[T]{More: more}
	for _, item := range items {
		converted, err := convert(item)
		if err != nil {
			return codehost.Listed[T]{}, err
		}
		out.Items = append(out.Items, converted)
	}
	return out, nil
}

// List is a whole list whose items have texts of strangers.
type List[T any] struct {
	// Text returns the text of strangers in an item.
	Text  func(T) string
	items []T
	texts int
}

// Add adds an item, unless there is an error with it. It returns that error, or one for a list that is too long to be kept.
func (l *List[T]) Add(item T, err error) error {
	if err != nil {
		return err
	}
	if l.texts += len(l.Text(item)); l.texts > maxTexts {
		return fmt.Errorf("%w: it lists more than %d bytes of text", codehost.ErrUnavailable, maxTexts)
	}
	l.items = append(l.items, item)
	return nil
}

// Whole returns the items, or the error with which reading them ended.
func (l *List[T]) Whole(err error) ([]T, error) {
	if err != nil {
		return nil, err
	}
	return l.items, nil
}

// TooMany is the error for a list that has no end.
func TooMany() error {
	return fmt.Errorf("%w: it lists more than %d pages", codehost.ErrUnavailable, MaxPages)
}

// Malformed is the error for an answer that lacks what a host of a kind has in it.
func Malformed(kind string) error {
	return fmt.Errorf("%w: it does not answer as %s does", codehost.ErrUnavailable, kind)
}

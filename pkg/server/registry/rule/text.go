// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package rule

import (
	"strings"
	"unicode/utf8"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/platform-ai/platform/pkg/redact"
)

// Clean makes texts valid UTF-8 and removes secrets from them.
func Clean(texts ...*string) {
	for _, s := range texts {
		*s, _ = redact.Text(strings.ToValidUTF8(*s, string(utf8.RuneError)))
	}
}

// CleanVisible is Clean, and also removes what a person who reviews a text would not see.
func CleanVisible(texts ...*string) {
	for _, s := range texts {
		*s = redact.Visible(strings.ToValidUTF8(*s, string(utf8.RuneError)))
	}
	Clean(texts...)
}

// CleanAnnotations removes secrets from the values of annotations. kubectl copies whole objects into one of them.
func CleanAnnotations(o metav1.Object) {
	annotations := o.GetAnnotations()
	for key, value := range annotations {
		annotations[key], _ = redact.Output(strings.ToValidUTF8(value, string(utf8.RuneError)))
	}
}

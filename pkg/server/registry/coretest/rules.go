// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package coretest

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
)

// Rules creates an object of the kind for each rule: its name, the spec in YAML, and the one error that is expected as
// "path: part of the message", or empty for none. Rules of tags and rules written by hand look the same to a client, so they
// are tried alike.
func Rules(t *testing.T, kind string, rules [][3]string) {
	t.Helper()
	s := Start(t)
	plural := v1alpha1.Plural(kind)
	for _, r := range rules {
		name, spec, want := r[0], r[1], r[2]
		t.Run(name, func(t *testing.T) {
			text := fmt.Sprintf("apiVersion: core.platform.ai/v1alpha1\nkind: %s\nmetadata: {generateName: x-}\nspec: %s\n", kind, spec)
			obj, err := s.Decode(text)
			if err != nil {
				t.Fatal(err)
			}
			_, err = s.Create(s.User(), plural, obj)
			CheckCause(t, err, want)
		})
	}
}

// CheckCause fails unless the error is invalid with the one cause that is wanted: "path: part of the message", or empty for
// no error.
func CheckCause(t *testing.T, err error, want string) {
	t.Helper()
	if want == "" {
		if err != nil {
			t.Error(err)
		}
		return
	}
	var status *apierrors.StatusError
	if !errors.As(err, &status) || !apierrors.IsInvalid(err) {
		t.Errorf("%v, want invalid: %s", err, want)
		return
	}
	path, text, _ := strings.Cut(want, ": ")
	causes := status.ErrStatus.Details.Causes
	if len(causes) != 1 || causes[0].Field != path || !strings.Contains(causes[0].Message, text) {
		t.Errorf("%v, want %s", err, want)
	}
}

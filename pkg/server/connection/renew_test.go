// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package connection

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/platform-ai/platform/pkg/connector/oauth"
)

// What keeps a request from being sent passes, unless somebody has to correct it.
func TestUnready(t *testing.T) {
	t.Parallel()
	secrets := corev1.Resource("secrets")
	for _, tc := range []struct {
		err   error
		class oauth.Class
	}{
		{apierrors.NewNotFound(secrets, "s"), oauth.Misconfigured},
		{apierrors.NewForbidden(secrets, "s", errors.New("no")), oauth.Misconfigured},
		{errors.New("the Secret has no key"), oauth.Misconfigured},
		{apierrors.NewInternalError(errors.New("host-internal")), oauth.Transient},
		{apierrors.NewTooManyRequests("host-internal", 1), oauth.Transient},
		{apierrors.NewServiceUnavailable("host-internal"), oauth.Transient},
		{&url.Error{Op: "Get", URL: "https://host-internal", Err: errors.New("refused")}, oauth.Transient},
		{context.DeadlineExceeded, oauth.Transient},
	} {
		got := unready(fmt.Errorf("secret of the client: %w", tc.err))
		if got.Class != tc.class || strings.Contains(got.Message, "host-internal") || (tc.class == oauth.Misconfigured) != strings.Contains(got.Message, tc.err.Error()) {
			t.Errorf("%v: %s %s", tc.err, got.Class, got.Message)
		}
	}
}

// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package modelrequest_test

import (
	"context"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apiserver/pkg/authentication/user"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/server/modelrequest"
	"github.com/platform-ai/platform/pkg/server/models"
)

// A fallback that is passed over is neither limited nor counted as a request.
func TestPassedOver(t *testing.T) {
	t.Parallel()
	limits := modelrequest.New(modelrequest.Options{
		Readers: modelrequest.Readers{Provider: func(context.Context, string) (*v1alpha1.Provider, error) {
			return nil, apierrors.NewServiceUnavailable("providers are not served yet")
		}}, Clock: clocktesting.NewFakeClock(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)),
	}) // which refuses everything, because nothing can be read
	m, err := limits.Start(t.Context(), models.Asked{PassedOver: true})
	if err != nil {
		t.Fatal(err)
	}
	m.End(models.NothingUsed)
	if _, err := limits.Start(t.Context(), models.Asked{Caller: &user.DefaultInfo{Name: "u"}}); err == nil {
		t.Error("a request that is sent is not limited")
	}
}

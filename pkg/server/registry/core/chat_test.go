// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package core_test

import (
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/registry/rest"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
)

// A server without chats says so, and its configuration has one name.
func TestChatConfigWithoutService(t *testing.T) {
	s := start(t)
	get := func(name string) (*v1alpha1.ChatConfig, error) {
		obj, err := s.Storage["chats/config"].(rest.Getter).Get(s.User(), name, &metav1.GetOptions{})
		if err != nil {
			return nil, err
		}
		return obj.(*v1alpha1.ChatConfig), nil
	}
	if got, err := get("default"); err != nil || got.Enabled {
		t.Errorf("%+v, %v", got, err)
	}
	if _, err := get("other"); !apierrors.IsNotFound(err) {
		t.Errorf("another name: %v", err)
	}
}

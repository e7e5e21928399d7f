// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package host_test

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
)

func TestStartsWithNamespacesAndAccounts(t *testing.T) {
	s := start(t, t.TempDir(), clock.RealClock{})
	k := s.client(s.admin())
	for range 2 {
		for _, ns := range []string{"default", "kube-system", "platform-system"} {
			if _, err := k.CoreV1().ServiceAccounts(ns).Get(t.Context(), "default", metav1.GetOptions{}); err != nil {
				t.Error(err)
			}
		}
		s.restart()
		k = s.client(s.admin())
	}
}

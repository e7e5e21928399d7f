// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package object

import (
	"fmt"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/apis/example"
	"k8s.io/apiserver/pkg/storage"

	"github.com/platform-ai/platform/pkg/jsonsize"
)

// TestValuesOfObjects: an object with too many values is not stored, nor does one get them bit by bit. One of an earlier version may
// stay as it is, and shrink.
func TestValuesOfObjects(t *testing.T) {
	h := open(t)
	labels := func(n int) map[string]string {
		all := map[string]string{}
		for i := range n {
			all[fmt.Sprint("label", i)] = "v"
		}
		return all
	}
	label := func(n int) error {
		return h.GuaranteedUpdate(testContext(t), podKey("a"), &example.Pod{}, false, nil, storage.SimpleUpdate(func(o runtime.Object) (runtime.Object, error) {
			o.(*example.Pod).Labels = labels(n)
			return o, nil
		}), nil)
	}
	refused := func(what string, err error) {
		t.Helper()
		if !apierrors.IsRequestEntityTooLargeError(err) || !strings.Contains(err.Error(), "the object must have at most ") {
			t.Errorf("%s: %v", what, err)
		}
	}
	large := pod("b")
	large.Labels = labels(20_000)
	refused("a large object", h.Create(testContext(t), podKey("b"), large, nil, 0))
	create(t, h, "a")
	if err := label(10_000); err != nil {
		t.Fatal(err)
	}
	refused("an object that grows", label(20_000))

	bounds := jsonsize.Object
	t.Cleanup(func() { jsonsize.Object = bounds })
	jsonsize.Object.Values = 5000 // less than the object has
	refused("a large object that grows", label(10_001))
	for _, n := range []int{9999, 6000, 1000} {
		if err := label(n); err != nil {
			t.Errorf("a large object that shrinks to %d labels: %v", n, err)
		}
	}
	refused("an object that has become small", label(6000))
}

// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package task

import (
	"strconv"
	"testing"

	"github.com/prometheus/client_golang/prometheus/testutil"
	"k8s.io/apimachinery/pkg/types"
)

// TestSkillMetricsAreBounded: whoever makes many skills does not make as many series.
func TestSkillMetricsAreBounded(t *testing.T) {
	t.Parallel()
	m, err := showSkills(nil)
	if err != nil {
		t.Fatal(err)
	}
	skill := func(i int) types.NamespacedName { return types.NamespacedName{Name: strconv.Itoa(i), Namespace: "a"} }
	for i := range maxSkills + 5 {
		m.loaded([]types.NamespacedName{skill(i), skill(0)})
	}
	if n := testutil.CollectAndCount(m); n != maxSkills+1 {
		t.Errorf("%d series", n)
	}
	if n := testutil.ToFloat64(m.WithLabelValues("0", "a")); n != maxSkills+6 {
		t.Errorf("the first one was counted %v times", n)
	}
	if n := testutil.ToFloat64(m.WithLabelValues(otherSkills, "")); n != 5 {
		t.Errorf("the rest was counted %v times", n)
	}
}

// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package toolbox

import (
	"regexp"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	labelset "k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
)

// The label of a session with a long name ends with 12 digits of a digest. What earlier versions labelled with 8 is found, too, and
// nothing of another session.
func TestOfSession(t *testing.T) {
	t.Parallel()
	long, other := strings.Repeat("a", 62)+".bc", strings.Repeat("a", 62)+".bd"
	for _, name := range []string{"short", "chat-session-0.1", strings.Repeat("a", 63), long} {
		set := ForSession(&v1alpha1.Session{ObjectMeta: metav1.ObjectMeta{Name: name}}).Labels
		value := set[v1alpha1.LabelChatSession]
		if problems := validation.IsValidLabelValue(value); len(problems) > 0 || len(name) <= 63 && value != name || len(name) > 63 && !regexp.MustCompile(`^a{50}-[0-9a-f]{12}$`).MatchString(value) {
			t.Errorf("the label of %s is %s: %v", name, value, problems)
		}
		selector, err := labelset.Parse(ofSession(name))
		if err != nil {
			t.Fatal(err)
		}
		for _, value := range []string{value, v1alpha1.LabelValue(name)} {
			if !selector.Matches(labelset.Set{v1alpha1.LabelChatSession: value}) {
				t.Errorf("%s does not select %s", selector, value)
			}
		}
		for _, value := range []string{v1alpha1.SessionLabel(other), v1alpha1.LabelValue(other), ""} {
			if selector.Matches(labelset.Set{v1alpha1.LabelChatSession: value}) {
				t.Errorf("%s selects %s", selector, value)
			}
		}
	}
}

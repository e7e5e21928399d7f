// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/test/kit"
	"github.com/platform-ai/platform/test/kit/standalone"
)

const skillScript = `
models: [scripted-1]
turns:
- name: runs the skill's program
  match: {turn: 1, lastRole: user, contains: Count}
  reply:
    toolCalls:
    - name: code_exec
      arguments: {language: bash, code: 'sh "$PLATFORM_SKILLS_DIR/counting/bin/count.sh" one two'}
    - {name: file_read, arguments: {path: skills/counting/bin/count.sh}}
- name: reports
  match: {turn: 2, lastRole: tool}
  reply: {text: '{{ .Results.code_exec.data.output }}'}
- name: has no program to look
  match: {turn: 1, lastRole: user, contains: Think}
  reply: {text: I have thought.}
`

// TestSkills: an agent has the texts of its skills, from Skills and ConfigMaps, in its system text, and their files in its
// sandbox, where its programs and file tools find them. Each start of a run with a Skill is counted.
func TestSkills(t *testing.T) {
	t.Parallel()
	metrics := prometheus.NewRegistry()
	p, model := standalone.WithModel(t, skillScript, func(o *standalone.Options) { o.AllowHostCommands, o.Metrics = true, metrics })
	ctx, c := t.Context(), p.API()
	texts := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "texts"}, Data: map[string]string{"manners": "Always say please."}}
	kit.Must[*corev1.ConfigMap](t)(p.Kubernetes(t).CoreV1().ConfigMaps("default").Create(ctx, texts, metav1.CreateOptions{}))
	const program = "#!/bin/sh\necho counted $#"
	kit.Must[*v1alpha1.Skill](t)(c.Skills("default").Create(ctx, &v1alpha1.Skill{ObjectMeta: metav1.ObjectMeta{Name: "counting"}, Spec: v1alpha1.SkillSpec{
		Description: "How to count.", Content: v1alpha1.SkillContent{Inline: "Run bin/count.sh.", Files: map[string]string{"bin/count.sh": program}},
	}}, metav1.CreateOptions{}))
	for name, tools := range map[string][]v1alpha1.AgentTool{"doer": {{Name: "code_exec"}, {Name: "file_read"}}, "thinker": nil} {
		kit.Must[*v1alpha1.Agent](t)(c.Agents("default").Create(ctx, &v1alpha1.Agent{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: v1alpha1.AgentSpec{
			ProviderRef: &v1alpha1.NamespacedReference{Name: "model"}, Tools: tools,
			Skills: []v1alpha1.SkillReference{{Name: "counting"}, {ConfigMapRef: &v1alpha1.KeyReference{Name: "texts", Key: "manners"}}},
		}}, metav1.CreateOptions{}))
	}
	p.Give("does", "doer", "Count the words.", v1alpha1.TaskSucceeded)
	if got := strings.TrimSpace(p.ResultOf("does")); got != "counted 2" {
		t.Errorf("the result is %q", got)
	}
	p.Give("thinks", "thinker", "Think.", v1alpha1.TaskSucceeded)
	exchanges := model.Exchanges()
	if len(exchanges) != 3 {
		t.Fatalf("%d requests", len(exchanges))
	}
	for i, where := range []bool{true, true, false} {
		system := exchanges[i].Request.Messages[0].Text()
		for _, want := range []string{"# Skill: counting\n\nRun bin/count.sh.", program, "Always say please."} {
			if !strings.Contains(system, want) {
				t.Errorf("request %d: the system text lacks %q:\n%s", i, want, system)
			}
		}
		if strings.Contains(system, "The files of the skills above are in ") != where {
			t.Errorf("request %d: where the files are, want %v:\n%s", i, where, system)
		}
	}
	if err := testutil.GatherAndCompare(metrics, strings.NewReader(`# HELP platform_skills_loaded_total Skills that attempts of tasks were started with, by the name and the namespace of the Skill. After 1000 of them the rest has the name "other".
# TYPE platform_skills_loaded_total counter
platform_skills_loaded_total{namespace="default",skill="counting"} 2
`), "platform_skills_loaded_total"); err != nil {
		t.Error(err)
	}
	messages := exchanges[1].Request.Messages
	if last := messages[len(messages)-1]; last.Role != "tool" || !strings.Contains(last.Text(), `echo counted $#`) {
		t.Errorf("file_read answered %s", last.Text())
	}
}

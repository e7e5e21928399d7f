// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package agentprogram

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/spf13/pflag"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
)

// TestPool: the name of a pool follows from whose work it does and what it runs, and people's pools are not taken for the controller's.
func TestPool(t *testing.T) {
	const image = "registry.example/codex@sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"
	o := DefaultPoolOptions()
	p := o.Pool("team", "me", v1alpha1.RuntimeCodex, image)
	if !regexp.MustCompile(`^codex-[0-9a-f]{10}$`).MatchString(p.Name) || TypeOf(p) != v1alpha1.RuntimeCodex || LimitsOf(p) != DefaultPoolLimits() {
		t.Errorf("%s %s %+v", p.Name, TypeOf(p), LimitsOf(p))
	}
	names := map[string]bool{p.Name: true}
	for _, other := range []*v1alpha1.RuntimePool{
		o.Pool("team2", "me", v1alpha1.RuntimeCodex, image), o.Pool("team", "you", v1alpha1.RuntimeCodex, image), o.Pool("team", "me", v1alpha1.RuntimeCodex, image+"0"),
		o.Pool("team", "me", v1alpha1.RuntimeClaude, image),
	} {
		if names[other.Name] {
			t.Errorf("%s is there twice", other.Name)
		}
		names[other.Name] = true
		if other.Spec.Runtime.Profile.Digest == p.Spec.Runtime.Profile.Digest != (other.Spec.Runtime.Image == image && TypeOf(other) == v1alpha1.RuntimeCodex) {
			t.Errorf("profile %+v", other.Spec.Runtime.Profile)
		}
	}
	for name, change := range map[string]func(*v1alpha1.RuntimePool){
		"name": func(p *v1alpha1.RuntimePool) { p.Name = "codex" }, "label": func(p *v1alpha1.RuntimePool) { p.Labels = nil },
		"image": func(p *v1alpha1.RuntimePool) { p.Spec.Runtime.Image += "0" }, "namespace": func(p *v1alpha1.RuntimePool) { p.Namespace = "other" },
	} {
		q := p.DeepCopy()
		if change(q); TypeOf(q) != "" {
			t.Errorf("another %s: %s", name, TypeOf(q))
		}
	}
	p.Spec.Capacity = &v1alpha1.RuntimePoolLimits{MaxRunningPrompts: new(int32(2))}
	if l := LimitsOf(p); l.MaxResidentSessions != 10 || l.MaxRunningPrompts != 2 {
		t.Errorf("limits %+v", l)
	}
}

// TestPoolFlags: limits that contradict each other are refused with the flag's name.
func TestPoolFlags(t *testing.T) {
	for args, want := range map[string]string{
		"": "", "--acp-pool-max-running-prompts=10": "", "--acp-idle-pool-ttl=0s": "",
		"--acp-pool-max-running-prompts=11":  "--acp-pool-max-resident-sessions: 10: must be at least --acp-pool-max-running-prompts, which is 11",
		"--acp-pool-max-running-prompts=0":   "--acp-pool-max-running-prompts: 0: must be at least 1",
		"--acp-pool-max-resident-sessions=3": "--acp-pool-max-resident-sessions: 3: must be at least",
		"--acp-idle-pool-ttl=-1s":            "--acp-idle-pool-ttl: must not be negative",
	} {
		o := DefaultPoolOptions()
		fs := pflag.NewFlagSet("test", pflag.ContinueOnError)
		o.AddFlags(fs)
		if err := fs.Parse(strings.Fields(args)); err != nil {
			t.Fatal(err)
		}
		if err := o.Check(); want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: %v, want %q", args, err, want)
		}
	}
	t.Setenv("PLATFORM_ACP_IDLE_POOL_TTL", "soon")
	o := DefaultPoolOptions()
	o.AddFlags(pflag.NewFlagSet("test", pflag.ContinueOnError))
	if err := o.Check(); err == nil || !strings.Contains(err.Error(), "PLATFORM_ACP_IDLE_POOL_TTL") {
		t.Error(err)
	}
}

// TestDigest: a program is another one when its file is.
func TestDigest(t *testing.T) {
	file := filepath.Join(t.TempDir(), "program")
	write := func(text string) {
		if err := os.WriteFile(file+".new", []byte(text), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(file+".new", file); err != nil {
			t.Fatal(err)
		}
	}
	var d Digests
	digest := func() string {
		s, err := d.Digest(file)
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	write("test")
	if got := digest(); got != "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08" || digest() != got {
		t.Error(got)
	}
	write("TEST")
	if got := digest(); got != "94ee059335e587e501cc4bf90613e0814f00a7b08bc7c648fd865a2af6a22cc2" {
		t.Error(got)
	}
	if _, err := d.Digest(file + ".gone"); err == nil {
		t.Error("a file that is not there has a digest")
	}
}

// TestRefusedFlags: what is done in another way is refused with the way, and only if it is asked for.
func TestRefusedFlags(t *testing.T) {
	for _, f := range refusedFlags() {
		for _, asked := range []bool{false, true} {
			fs := pflag.NewFlagSet("x", pflag.ContinueOnError)
			o := DefaultPoolOptions()
			o.AddFlags(fs)
			args := []string{"--" + f.name + "=true"}
			if !asked {
				args = nil
			}
			err := fs.Parse(args)
			if err == nil {
				err = o.Check()
			}
			if asked != (err != nil) || asked && (!strings.Contains(err.Error(), "--"+f.name) || !strings.Contains(err.Error(), f.why)) {
				t.Errorf("%s: %v", f.name, err)
			}
		}
	}
}

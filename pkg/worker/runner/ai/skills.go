// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package ai

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/plan"
	"github.com/platform-ai/platform/pkg/runspec"
	"github.com/platform-ai/platform/pkg/tool/builtin"
	"github.com/platform-ai/platform/pkg/worker/runner"
)

// skillsFolder is the folder of the files of skills, in the run's working folder.
const skillsFolder = "skills"

// skills are the files that a run has of its skills. A nil pointer stands for none.
type skills struct{ dir string }

// skills writes the files of the run's skills to its working folder, where its programs and file tools reach them. They are the run's
// own copy, and each attempt writes them again.
func (r *run) skills(p *plan.Plan) (*skills, error) {
	if !slices.ContainsFunc(p.Skills, func(s *v1alpha1.Skill) bool { return len(s.Spec.Content.Files) > 0 }) {
		return nil, nil //nolint:nilnil // there are none
	}
	if err := writeSkills(r.WorkDir, p.Skills); err != nil {
		return nil, runner.Fail(v1alpha1.ReasonWorkerMisconfigured, "files of the skills: %w", err)
	}
	return &skills{dir: filepath.Join(r.WorkDir, skillsFolder)}, nil
}

// writeSkills writes the files of skills below a folder. An earlier attempt may have left links there, which are not
// followed out of the folder.
func writeSkills(workDir string, all []*v1alpha1.Skill) error {
	root, err := os.OpenRoot(workDir)
	if err != nil {
		return err
	}
	defer func() { _ = root.Close() }()
	if info, err := root.Lstat(skillsFolder); err == nil && !info.IsDir() {
		if err := root.Remove(skillsFolder); err != nil {
			return err
		}
	}
	for _, s := range all {
		top := filepath.Join(skillsFolder, folderOf(s, all))
		if err := root.RemoveAll(top); err != nil {
			return err
		}
		for _, path := range slices.Sorted(maps.Keys(s.Spec.Content.Files)) {
			if !filepath.IsLocal(filepath.FromSlash(path)) {
				return fmt.Errorf("skill %q: %q is not a path below the folder of the skill", s.Name, path)
			}
			if err := writeSkillFile(root, filepath.Join(top, filepath.FromSlash(path)), s.Spec.Content.Files[path]); err != nil {
				return fmt.Errorf("skill %q: %w", s.Name, err)
			}
		}
	}
	return nil
}

func writeSkillFile(root *os.Root, path, text string) error {
	if err := root.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	mode := os.FileMode(0o644)
	if strings.HasPrefix(text, "#!") {
		mode = 0o755
	}
	return root.WriteFile(path, []byte(text), mode)
}

// folderOf is the folder of a skill: its name, or with the namespace if skills of several have the name.
func folderOf(s *v1alpha1.Skill, all []*v1alpha1.Skill) string {
	for _, o := range all {
		if o.Name == s.Name && o.Namespace != s.Namespace {
			return s.Namespace + "_" + s.Name
		}
	}
	return s.Name
}

// env describes the files to programs.
func (s *skills) env() []string {
	if s == nil {
		return nil
	}
	return []string{runspec.EnvSkillsDir + "=" + s.dir}
}

// note describes the files to a model that has a tool to read or run them.
func (s *skills) note(p *plan.Plan) string {
	reads := func(t plan.Tool) bool {
		return t.Object == nil && (t.Name == builtin.FileRead.Name || t.Name == builtin.CodeExec.Name)
	}
	if s == nil || !slices.ContainsFunc(p.Tools, reads) {
		return ""
	}
	return fmt.Sprintf("The files of the skills above are in %s, each in a folder with the name of its skill.", s.dir)
}

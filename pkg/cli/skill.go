// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"unicode/utf8"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/yaml"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
)

// skillFile is the name of the file with the text of a skill. It begins with YAML between two lines of dashes, as in the format of
// agentskills.io; other files of its folder are files of the skill.
const skillFile = "SKILL.md"

// maxSkillFile limits what is read of one file: a server refuses larger objects anyway.
const maxSkillFile = 1 << 20

// header is the beginning of a SKILL.md. Members of other programs are ignored.
type header struct {
	Name        string `json:"name"`
	Description string `json:"description"`
	Metadata    struct {
		Version string `json:"version"`
		Author  string `json:"author"`
	} `json:"metadata"`
}

// skillFileCommands returns the commands that work on files.
func skillFileCommands(api *server, term *terminal) []*cobra.Command {
	return []*cobra.Command{skillInit(term), skillValidate(term), skillImport(api, term), skillContent(api, term)}
}

func skillInit(term *terminal) *cobra.Command {
	var h header
	var force bool
	cmd := &cobra.Command{
		Use: "init [DIR]", Short: "Write a " + skillFile + " to begin with", Args: cobra.MaximumNArgs(1),
		Example: `  platform skill init reviewing --description "How we review changes"`,
	}
	cmd.Flags().StringVar(&h.Name, "name", "", "name of the skill (default: that of the folder)")
	cmd.Flags().StringVar(&h.Description, "description", "Say in one sentence what this skill is good for, and when to use it.", "what the skill is good for")
	cmd.Flags().BoolVar(&force, "force", false, "write over a "+skillFile+" that is there")
	cmd.RunE = func(_ *cobra.Command, args []string) error {
		dir, err := filepath.Abs(strings.Join(args, ""))
		if err != nil {
			return err
		}
		if h.Name == "" {
			h.Name = filepath.Base(dir)
		}
		if err := checkSkill(&h, "# "); err != nil {
			return err
		}
		top, err := yaml.Marshal(map[string]string{"name": h.Name, "description": h.Description})
		if err != nil {
			return err
		}
		if err := os.MkdirAll(dir, 0o755); err != nil { //nolint:gosec // a folder for people and for git
			return err
		}
		flags := os.O_WRONLY | os.O_CREATE | os.O_EXCL
		if force {
			flags = os.O_WRONLY | os.O_CREATE | os.O_TRUNC
		}
		name := filepath.Join(dir, skillFile)
		file, err := os.OpenFile(name, flags, 0o644) //nolint:gosec // as any file of text
		if errors.Is(err, fs.ErrExist) {
			return fmt.Errorf("%s is there already: --force writes over it", name)
		}
		if err != nil {
			return err
		}
		_, err = fmt.Fprintf(file, "---\n%s---\n\n# %s\n\nWrite here what the agent has to know and do.\n", top, h.Name)
		if err := errors.Join(err, file.Close()); err != nil {
			return err
		}
		return term.say("%s written", name)
	}
	return cmd
}

func skillValidate(term *terminal) *cobra.Command {
	var file string
	cmd := &cobra.Command{Use: "validate [" + skillFile + "]", Short: "Check a skill that lies in files, without a server", Args: cobra.MaximumNArgs(1)}
	cmd.Flags().StringVarP(&file, "file", "f", skillFile, "the file, or its folder")
	cmd.RunE = func(_ *cobra.Command, args []string) error {
		if len(args) == 1 {
			file = args[0]
		}
		s, err := readSkill(file, "")
		if err != nil {
			return err
		}
		return term.say("skill %s is valid: %s, files beside it: %d", s.Name, many(utf8.RuneCountInString(s.Spec.Content.Inline), "character"), len(s.Spec.Content.Files))
	}
	return cmd
}

func skillImport(api *server, term *terminal) *cobra.Command {
	var name string
	cmd := &cobra.Command{
		Use: "import " + skillFile, Short: "Create a skill from files", Args: cobra.ExactArgs(1),
		Long: "Create a skill from a " + skillFile + ", which begins with YAML between two lines of dashes (name, description), and from the other files\nof its folder. Hidden files and links are left out.",
	}
	cmd.Flags().StringVar(&name, "name", "", "name of the skill (default: the one in the file)")
	f := addOutput(cmd, asTable, asJSON, asYAML, asName)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		s, err := readSkill(args[0], name)
		if err != nil {
			return err
		}
		c, namespace, err := api.client()
		if err != nil {
			return err
		}
		made, err := c.Skills(namespace).Create(cmd.Context(), s, metav1.CreateOptions{FieldManager: "platform"})
		if err != nil {
			return err
		}
		return printCreated(term, made, "Skill", *f)
	}
	return cmd
}

func skillContent(api *server, term *terminal) *cobra.Command {
	cmd := &cobra.Command{
		Use: "content SKILL [FILE]", Short: "Print the text of a skill, or one of its files", Args: cobra.RangeArgs(1, 2), ValidArgsFunction: api.names("skills"),
	}
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		c, namespace, err := api.client()
		if err != nil {
			return err
		}
		s, err := c.Skills(namespace).Get(cmd.Context(), args[0], metav1.GetOptions{})
		if err != nil {
			return err
		}
		text, found := s.Spec.Content.Inline, true
		if len(args) == 2 {
			text, found = s.Spec.Content.Files[args[1]]
		}
		if !found {
			return fmt.Errorf("skill %s has no file %q", args[0], args[1])
		}
		return printResult(term, text)
	}
	return cmd
}

// readSkill reads a skill from a SKILL.md, or from the folder of one. name replaces the one in the file if it is not empty.
func readSkill(file, name string) (*v1alpha1.Skill, error) {
	if info, err := os.Stat(file); err == nil && info.IsDir() {
		file = filepath.Join(file, skillFile)
	}
	root, err := os.OpenRoot(filepath.Dir(file))
	if err != nil {
		return nil, err
	}
	defer root.Close() //nolint:errcheck // it was only read
	whole, err := readText(root.FS(), filepath.Base(file))
	if err != nil {
		return nil, err
	}
	h, body, err := parseSkill(whole)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	if name != "" {
		h.Name = name
	}
	if err := checkSkill(h, body); err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	s := &v1alpha1.Skill{ObjectMeta: metav1.ObjectMeta{Name: h.Name}}
	s.Spec.Description, s.Spec.Version, s.Spec.Author = h.Description, h.Metadata.Version, h.Metadata.Author
	s.Spec.Content.Inline = body
	s.Spec.Content.Files, err = besides(root.FS(), filepath.Base(file))
	return s, err
}

// parseSkill divides a SKILL.md.
func parseSkill(whole string) (*header, string, error) {
	rest, ok := strings.CutPrefix(strings.ReplaceAll(whole, "\r\n", "\n"), "---\n")
	top, body, closed := strings.Cut(rest, "\n---\n")
	if !ok || !closed {
		return nil, "", errors.New("it must begin with YAML between two lines ---, with name and description")
	}
	h := &header{}
	if err := yaml.Unmarshal([]byte(top), h); err != nil {
		return nil, "", fmt.Errorf("the YAML at its beginning: %w", err)
	}
	return h, strings.TrimLeft(body, "\n"), nil
}

func checkSkill(h *header, body string) error {
	switch wrong := validation.IsDNS1123Subdomain(h.Name); {
	case len(wrong) > 0:
		return fmt.Errorf("name: %q: %s", h.Name, wrong[0])
	case strings.TrimSpace(h.Description) == "":
		return errors.New("description: is required: what the skill is good for")
	case strings.TrimSpace(body) == "":
		return errors.New("there is no text after the YAML")
	}
	return nil
}

// besides reads the files of a skill: all of its folder but the SKILL.md itself.
func besides(folder fs.FS, main string) (map[string]string, error) {
	files := map[string]string{}
	err := fs.WalkDir(folder, ".", func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case name != "." && strings.HasPrefix(path.Base(name), "."):
			if d.IsDir() {
				return fs.SkipDir
			}
			return nil
		case !d.Type().IsRegular() || name == main:
			return nil
		}
		text, err := readText(folder, name)
		if err != nil {
			return err
		}
		files[name] = text
		return nil
	})
	return files, err
}

func readText(folder fs.FS, name string) (string, error) {
	info, err := fs.Stat(folder, name)
	if err != nil {
		return "", err
	}
	if info.Size() > maxSkillFile {
		return "", fmt.Errorf("%s: has %d bytes; files of skills have at most %d", name, info.Size(), maxSkillFile)
	}
	data, err := fs.ReadFile(folder, name)
	if err != nil {
		return "", err
	}
	if !utf8.Valid(data) {
		return "", fmt.Errorf("%s: is not text (UTF-8); files of skills are", name)
	}
	return string(data), nil
}

// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// Package rule holds field rules that several resources share and that
// declarative validation tags cannot express. Every error names the path and
// the rule; none repeats a value that could be a secret.
package rule

import (
	"fmt"
	"math"
	"net/url"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
)

// Positive requires a duration, if set, to be greater than zero.
func Positive(d *v1alpha1.Duration, p *field.Path) field.ErrorList {
	if d == nil {
		return nil
	}
	switch v, err := d.Parse(); {
	case err != nil:
		return field.ErrorList{field.Invalid(p, *d, "must be a duration, such as 90s, 10m or 1h30m")}
	case v <= 0:
		return field.ErrorList{field.Invalid(p, *d, "must be greater than zero")}
	}
	return nil
}

// Between requires a number, if set, to be from low to high, both included.
func Between(v *float64, low, high float64, p *field.Path) field.ErrorList {
	if v == nil || *v >= low && *v <= high {
		return nil
	}
	if math.IsInf(high, 1) {
		return field.ErrorList{field.Invalid(p, *v, fmt.Sprintf("must be greater than or equal to %g", low))}
	}
	return field.ErrorList{field.Invalid(p, *v, fmt.Sprintf("must be between %g and %g", low, high))}
}

// URL describes which addresses are allowed.
type URL struct {
	// Schemes are the allowed schemes.
	Schemes []string
	// Query allows a query string.
	Query bool
}

// HTTP allows http and https URLs without a query string.
func HTTP() URL { return URL{Schemes: []string{"http", "https"}} }

// Check requires s to be an absolute URL of this form, without credentials and
// fragment. An empty s is accepted. Errors do not repeat s, which may contain a
// credential.
func (u URL) Check(s string, p *field.Path) field.ErrorList {
	if s == "" {
		return nil
	}
	bad := func(rule string) field.ErrorList {
		return field.ErrorList{field.Invalid(p, field.OmitValueType{}, rule)}
	}
	v, err := url.Parse(s)
	switch {
	case err != nil || v.Host == "" || !slices.Contains(u.Schemes, v.Scheme):
		return bad("must be an absolute URL of the scheme " + strings.Join(u.Schemes, " or "))
	case v.User != nil && (v.Scheme != "ssh" || hasPassword(v)):
		return bad("must not contain credentials")
	case v.Fragment != "" || strings.HasSuffix(s, "#"):
		return bad("must not contain a fragment")
	case !u.Query && (v.RawQuery != "" || v.ForceQuery):
		return bad("must not contain a query")
	}
	return nil
}

func hasPassword(u *url.URL) bool { _, ok := u.User.Password(); return ok }

// RelativePath requires a slash-separated relative path that stays below its
// root, in its shortest form.
func RelativePath(s string, p *field.Path) field.ErrorList {
	if !v1alpha1.IsRelativePath(s) {
		return field.ErrorList{field.Invalid(p, s, `must be a relative path without "." and ".." elements`)}
	}
	return nil
}

// Skills requires each reference to be to a Skill or to a ConfigMap.
func Skills(refs []v1alpha1.SkillReference, p *field.Path) field.ErrorList {
	var errs field.ErrorList
	for i, r := range refs {
		switch {
		case r.Name == "" && r.ConfigMapRef == nil:
			errs = append(errs, field.Required(p.Index(i), "one of name and configMapRef must be set"))
		case r.Name != "" && r.ConfigMapRef != nil:
			errs = append(errs, field.Invalid(p.Index(i), r.Name, "only one of name and configMapRef may be set"))
		}
	}
	return errs
}

// Changed reports whether a label or an annotation is not what it was.
func Changed(m, old map[string]string, key string) bool {
	v, is := m[key]
	o, was := old[key]
	return is != was || v != o
}

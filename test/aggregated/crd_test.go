// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package aggregated

import (
	"bytes"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/test/kit"
)

var (
	manifestSeed  = flag.Uint64("manifest-seed", 1, "seed of the manifests that TestLikeCustomResources generates")
	manifestCount = flag.Int("manifests", 2, "how many manifests TestLikeCustomResources generates for each kind")
)

// TestLikeCustomResources: what a client sends to the platform for its kinds has the outcome that it has for custom resources of the same
// types at a stock kube-apiserver, but for the differences that are listed. The manifests are those of the repository and generated
// ones; each goes through the same requests on both sides.
func TestLikeCustomResources(t *testing.T) {
	s := Start(t)
	s.namespace(crdNamespace)
	resources := s.stored()
	s.define(t, resources)
	t.Logf("-manifest-seed=%d -manifests=%d", *manifestSeed, *manifestCount)

	c := &comparison{t: t, random: rand.New(rand.NewPCG(*manifestSeed, 0))}
	for i, group := range []string{v1alpha1.GroupName, crdGroup} {
		c.sides[i], c.now[i] = side{s, group}, map[string]*unstructured.Unstructured{}
	}
	c.prepare(resources)
	for _, step := range c.steps() {
		c.run(step)
	}
	c.kubectl()
	c.report(*manifestSeed == 1 && *manifestCount == 2)
}

const crdNamespace = "alike"

// side is the platform's group or that of the custom resources, behind the same kube-apiserver.
type side struct {
	*Server
	group string
}

// path is the path of an object.
func (d side) path(m manifest) string {
	return fmt.Sprintf("/apis/%s/%s/namespaces/%s/%s", d.group, v1alpha1.SchemeGroupVersion.Version, crdNamespace, m.path())
}

func (d side) send(method string, m manifest, query, contentType, body string) answer {
	d.t.Helper()
	got := d.Ask(d.t, d.Admin, method, d.path(m)+query, body, "Content-Type", contentType)
	a := answer{code: got.Code, body: got.Body}
	if got.Code >= http.StatusBadRequest {
		a.reason = string(statusOf(got.Body).Reason)
	}
	return a
}

func statusOf(body string) (s metav1.Status) {
	u := parsed([]byte(body))
	s.Reason = metav1.StatusReason(fmt.Sprint(u["reason"]))
	return s
}

// apply sends a server-side apply.
func (d side) apply(m manifest, manager, query, text string) answer {
	d.t.Helper()
	return d.send(http.MethodPatch, m, "?fieldManager="+manager+query, string(types.ApplyYAMLPatchType), text)
}

func (d side) patch(m manifest, kind types.PatchType, text string) answer {
	d.t.Helper()
	return d.send(http.MethodPatch, m, "?fieldManager=editor", string(kind), text)
}

func (d side) put(m manifest, text string) answer {
	d.t.Helper()
	return d.send(http.MethodPut, m, "?fieldManager=editor", "application/json", text)
}

// get returns the object as it is stored; nil if there is none.
func (d side) get(m manifest) *unstructured.Unstructured {
	d.t.Helper()
	a := d.send(http.MethodGet, m, "", "application/json", "")
	if a.code != http.StatusOK {
		return nil
	}
	return &unstructured.Unstructured{Object: parsed([]byte(a.body))}
}

// answer is what a request was answered with.
type answer struct {
	code         int
	reason, body string
}

// comparison sends the same requests to both sides.
type comparison struct {
	t      *testing.T
	random *rand.Rand
	sides  [2]side // ours, and the custom resources
	all    []manifest
	// now are the objects as they are stored, by manifest.
	now [2]map[string]*unstructured.Unstructured
	// found are the differences.
	found []difference
	// rejected counts values that the platform's own rules refused.
	rejected int
}

// prepare makes the manifests.
func (c *comparison) prepare(resources []metav1.APIResource) {
	c.t.Helper()
	ours, all := c.sides[0], written(c.t, resources)
	g := generator{c.random, func(m manifest) bool {
		ok := ours.apply(m, "try", "&dryRun=All", plain(m.as(ours.group, crdNamespace, m.name))).code < http.StatusBadRequest
		if !ok {
			c.rejected++
		}
		return ok
	}}
	grown := map[string]int{}
	for _, r := range resources {
		c.all = append(c.all, all[r.Kind]...)
		schema := openAPI().kind(r.Kind)
		for i := range *manifestCount {
			m := all[r.Kind][i%len(all[r.Kind])]
			m.name = fmt.Sprintf("generated-%d", i)
			if c.random.IntN(2) == 0 {
				m = m.with([]string{"metadata", "creationTimestamp"}, nil)
			}
			m = g.grown(m, schema)
			grown[r.Kind] += len(m.added)
			c.all = append(c.all, m)
		}
	}
	// What the server stores in another form is among the manifests whatever is generated.
	amount := all["Task"][0].with([]string{"spec", "resources"}, node{"limits": node{"memory": "1024Mi"}})
	amount.name = "amount"
	agent := slices.IndexFunc(all["Task"], func(m manifest) bool { return m.content["spec"].(node)["type"] == "agent" })
	if agent < 0 {
		c.t.Fatal("no manifest of the repository is a Task of type agent")
	}
	defaulted := all["Task"][agent].with([]string{"spec", "timeout"})
	defaulted.name = "defaulted"
	c.all = append(c.all, amount, defaulted)
	for i, m := range c.all {
		for _, path := range m.members() {
			if m.says(path) && g.accepted(m.with(path)) {
				c.all[i].optional = path
				break
			}
		}
	}
	c.t.Logf("%d manifests; members that were added: %v; values that the server's rules refused: %d", len(c.all), grown, c.rejected)
}

// step is one request for each manifest on each side.
type step struct {
	name string
	// do sends the request. had is the object before it.
	do func(d side, m manifest, had *unstructured.Unstructured) answer
}

// steps are the requests, in their order.
func (c *comparison) steps() []step {
	text := func(d side, m manifest) string { return plain(m.as(d.group, crdNamespace, m.name)) }
	otherwise := func(v node, fractions bool) string {
		return style{rand.New(rand.NewPCG(*manifestSeed, 1)), !fractions, fractions, false}.write(v)
	}
	again := func(manager string) func(d side, m manifest, _ *unstructured.Unstructured) answer {
		return func(d side, m manifest, _ *unstructured.Unstructured) answer {
			return d.apply(m, manager, "", text(d, m))
		}
	}
	// without is the manifest without one member; with null in its place if that is wanted.
	without := func(m manifest, value ...any) manifest {
		if m.optional == nil {
			return m
		}
		return m.with(m.optional, value...)
	}
	spec := func(had *unstructured.Unstructured) string { return plain(node{"spec": had.Object["spec"]}) }
	return []step{
		{"apply", again("flux")},
		{"apply again", again("flux")},
		{"apply again, written otherwise", func(d side, m manifest, _ *unstructured.Unstructured) answer {
			w := style{rand.New(rand.NewPCG(*manifestSeed, 1)), true, false, true}
			return d.apply(m, "flux", "", w.write(m.as(d.group, crdNamespace, m.name)))
		}},
		{"apply again, 1 as 1.0", func(d side, m manifest, _ *unstructured.Unstructured) answer {
			return d.apply(m, "flux", "", otherwise(m.as(d.group, crdNamespace, m.name), true))
		}},
		{"put what was read", func(d side, m manifest, had *unstructured.Unstructured) answer { return d.put(m, plain(had.Object)) }},
		{"put what was read, written otherwise", func(d side, m manifest, had *unstructured.Unstructured) answer {
			return d.put(m, otherwise(had.Object, false))
		}},
		{"put what was read, 1 as 1.0", func(d side, m manifest, had *unstructured.Unstructured) answer {
			return d.put(m, otherwise(had.Object, true))
		}},
		{"merge patch of what is there", func(d side, m manifest, had *unstructured.Unstructured) answer {
			return d.patch(m, types.MergePatchType, spec(had))
		}},
		{"strategic merge patch of what is there", func(d side, m manifest, had *unstructured.Unstructured) answer {
			if d.group == crdGroup { // custom resources have none
				return d.patch(m, types.MergePatchType, spec(had))
			}
			return d.patch(m, types.StrategicMergePatchType, spec(had))
		}},
		{"apply by a second manager", again("argo")},
		{"apply again by the second manager", again("argo")},
		{"apply again by the first manager", again("flux")},
		{"dry run of an apply", func(d side, m manifest, _ *unstructured.Unstructured) answer {
			return d.apply(m.with([]string{"metadata", "labels"}, node{"a": "b"}), "try", "&dryRun=All&force=true", text(d, m))
		}},
		{"apply without a member that the other manager keeps", func(d side, m manifest, _ *unstructured.Unstructured) answer {
			return d.apply(m, "flux", "", text(d, without(m)))
		}},
		{"apply without a member", func(d side, m manifest, _ *unstructured.Unstructured) answer {
			return d.apply(m, "argo", "", text(d, without(m)))
		}},
		{"apply with null for the member", func(d side, m manifest, _ *unstructured.Unstructured) answer {
			return d.apply(m, "argo", "", text(d, without(m, nil)))
		}},
		{"apply with null for the member again", func(d side, m manifest, _ *unstructured.Unstructured) answer {
			return d.apply(m, "argo", "", text(d, without(m, nil)))
		}},
		{"delete", func(d side, m manifest, _ *unstructured.Unstructured) answer {
			return d.send(http.MethodDelete, m, "", "application/json", "")
		}},
	}
}

// run takes a step with each manifest on both sides, and compares. The times of managers have whole seconds, so a write that changes
// nothing else shows only in another second than the one before.
func (c *comparison) run(s step) {
	c.t.Helper()
	began := time.Now().Unix()
	kit.Await(c.t, "the next second", func() bool { return time.Now().Unix() > began })
	outcomes := make([][2]outcome, len(c.all))
	var wg sync.WaitGroup
	for i, d := range c.sides {
		wg.Go(func() {
			for n, m := range c.all {
				had := c.now[i][m.path()]
				if had == nil && s.name != "apply" {
					continue // refused before, which was compared
				}
				a := s.do(d, m, had)
				has := d.get(m)
				if a.code == http.StatusConflict && had != nil && onlyStatus(had, has) {
					had = has
					a = s.do(d, m, had)
					has = d.get(m)
				}
				c.now[i][m.path()], outcomes[n][i] = has, outcomeOf(a, had, has)
			}
		})
	}
	wg.Wait()
	for n, m := range c.all {
		c.compare(m, s.name, outcomes[n])
	}
}

// outcome is what a request did: names and values.
type outcome map[string]string

// moved is the name of whether the resourceVersion did.
const moved = "resourceVersion moved"

// retimedName is the name of whether the times of managers did.
const retimedName = "times of managers moved"

func outcomeOf(a answer, had, has *unstructured.Unstructured) outcome {
	o := outcome{"code": fmt.Sprint(a.code), "reason": a.reason}
	if a.code >= http.StatusBadRequest {
		o["message"] = a.body
	}
	if had != nil && has != nil {
		o[moved] = fmt.Sprint(had.GetResourceVersion() != has.GetResourceVersion() && !onlyStatus(had, has))
		o["generation moved"] = fmt.Sprint(had.GetGeneration() != has.GetGeneration())
		o[retimedName] = fmt.Sprint(retimed(had, has))
	}
	shown := has
	if a.code < http.StatusBadRequest { // also of a dry run
		if u := (&unstructured.Unstructured{Object: parsed([]byte(a.body))}); u.GetKind() != "Status" {
			shown = u
		}
	}
	if shown == nil {
		return o
	}
	for _, e := range shown.GetManagedFields() {
		if e.Time == nil {
			o[fmt.Sprintf("%s %s%s", e.Manager, e.Operation, e.Subresource)] = "without a time"
		}
		set := fieldpath.NewSet()
		if err := set.FromJSON(bytes.NewReader(e.FieldsV1.GetRawBytes())); err != nil {
			o["manager "+e.Manager] = err.Error()
			continue
		}
		set.Iterate(func(p fieldpath.Path) {
			o[fmt.Sprintf("%s %s%s of %s", e.Manager, e.Operation, e.Subresource, p)] = "owned"
		})
	}
	for name, v := range shown.Object {
		switch name {
		case "kind", "apiVersion", "status":
		case "metadata":
			for _, member := range []string{"labels", "annotations", "finalizers"} {
				flatten(o, "metadata."+member, v.(node)[member])
			}
		default:
			flatten(o, name, v)
		}
	}
	return o
}

// onlyStatus reports whether nothing but the status differs, which the server writes meanwhile: it reports that no controller takes a task.
func onlyStatus(had, has *unstructured.Unstructured) bool {
	without := func(u *unstructured.Unstructured) node {
		u = u.DeepCopy()
		u.SetResourceVersion("")
		delete(u.Object, "status")
		return u.Object
	}
	return !reflect.DeepEqual(had.Object["status"], has.Object["status"]) && reflect.DeepEqual(without(had), without(has))
}

// retimed reports whether a manager's entry that was there has another time.
func retimed(had, has *unstructured.Unstructured) bool {
	was := timesOf(had)
	for key, now := range timesOf(has) {
		if before, ok := was[key]; ok && before != now {
			return true
		}
	}
	return false
}

// timesOf returns the times of managers by their entries.
func timesOf(u *unstructured.Unstructured) map[string]string {
	times := map[string]string{}
	for _, e := range u.GetManagedFields() {
		times[e.Manager+" "+string(e.Operation)+e.Subresource] = fmt.Sprint(e.Time)
	}
	return times
}

// flatten adds a value by the paths of all that it holds.
func flatten(o outcome, path string, v any) {
	switch v := v.(type) {
	case nil:
	case node:
		o[path] = "{}"
		for name, inner := range v {
			flatten(o, path+"."+name, inner)
		}
	case []any:
		o[path] = "[]"
		for i, inner := range v {
			flatten(o, fmt.Sprintf("%s[%d]", path, i), inner)
		}
	default:
		o[path] = strings.TrimSpace(plain(v))
	}
}

// difference is where the outcomes of a request differ. A value that only one side has is empty on the other.
type difference struct {
	manifest
	step, what   string
	ours, theirs string
	// all are the whole outcomes.
	all [2]outcome
}

func (c *comparison) compare(m manifest, step string, o [2]outcome) {
	if o[0]["code"] != o[1]["code"] || o[0]["reason"] != "" { // all else follows from that, also later if one side has changed
		c.found = append(c.found, difference{m, step, "code", o[0]["code"], o[1]["code"], o})
		if o[0][moved] != o[1][moved] {
			delete(c.now[0], m.path())
			delete(c.now[1], m.path())
		}
		return
	}
	names := slices.Concat(slices.Collect(maps.Keys(o[0])), slices.Collect(maps.Keys(o[1])))
	slices.Sort(names)
	for _, what := range slices.Compact(names) {
		if what != "message" && o[0][what] != o[1][what] {
			c.found = append(c.found, difference{m, step, what, o[0][what], o[1][what], o})
		}
	}
}

// kubectl applies all manifests by client-side apply, twice.
func (c *comparison) kubectl() {
	c.t.Helper()
	var said [2][2][]string
	wrote := make([][2]outcome, len(c.all))
	for i, d := range c.sides {
		var all strings.Builder
		for _, m := range c.all {
			all.WriteString("---\n" + plain(m.as(d.group, crdNamespace, "kubectl-"+m.name)))
		}
		file := filepath.Join(c.t.TempDir(), "all.yaml")
		if err := os.WriteFile(file, []byte(all.String()), 0o600); err != nil {
			c.t.Fatal(err)
		}
		for round := range 2 {
			out := d.c.Shell(c.t, "kubectl apply -f "+file).Output
			for n, m := range c.all {
				m.name = "kubectl-" + m.name
				has := d.get(m)
				if had := c.now[i][m.path()]; had != nil && has != nil {
					wrote[n][i] = outcome{moved: fmt.Sprint(had.GetResourceVersion() != has.GetResourceVersion() && !onlyStatus(had, has))}
				}
				c.now[i][m.path()] = has
			}
			said[i][round] = strings.Split(strings.TrimSpace(strings.ReplaceAll(out, d.group, "GROUP")), "\n")
		}
	}
	for n, m := range c.all {
		c.compare(m, "kubectl apply again", wrote[n])
	}
	for round, step := range []string{"kubectl apply", "kubectl apply again"} {
		ours, theirs := said[0][round], said[1][round]
		for _, line := range ours {
			if !slices.Contains(theirs, line) {
				c.found = append(c.found, difference{step: step, what: "line", ours: line})
			}
		}
		for _, line := range theirs {
			if !slices.Contains(ours, line) {
				c.found = append(c.found, difference{step: step, what: "line", theirs: line})
			}
		}
	}
}

// maxPrinted limits the differences that are printed.
const maxPrinted = 100

// report fails the test for each difference that is not listed, and, if the run is the default one, for each listed one that did not occur.
func (c *comparison) report(whole bool) {
	c.t.Helper()
	counts, others := map[string]int{}, map[string]int{}
	for _, d := range c.found {
		if at := slices.IndexFunc(alike, func(k known) bool { return k.is(d) }); at >= 0 {
			counts[alike[at].reason]++
			continue
		}
		// Of each place the first step that shows it.
		if key := d.kind + " " + d.name + d.what; others[key] == 0 {
			if len(others) < maxPrinted {
				c.t.Errorf("%s %s, %s: %s: ours %q, custom resource %q %.400s", d.kind, d.name, d.step, d.what, d.ours, d.theirs, d.all[0]["message"]+d.all[1]["message"])
			}
			others[key]++
		}
	}
	for _, k := range alike {
		c.t.Logf("%5d times: %s", counts[k.reason], k.reason)
		if whole && !k.seldom && counts[k.reason] == 0 {
			c.t.Errorf("a listed difference does not occur any more: %s", k.reason)
		}
	}
	c.t.Logf("%d differences, %d places that are not listed", len(c.found), len(others))
}

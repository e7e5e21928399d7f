// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// Package alerts evaluates the alert rules of manifests/monitoring with Prometheus' own engine. It is a module of its own, so
// that the product does not depend on Prometheus.
package alerts

import (
	"context"
	"fmt"
	"log/slog"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/promql/promqltest"
	"github.com/prometheus/prometheus/rules"
	"sigs.k8s.io/yaml"
)

// scrape is the time between two samples and between two evaluations.
const scrape = time.Minute

// healthy is what a busy server without a problem reports for two hours. Some requests, events and reports fail now and then.
var healthy = []string{
	`platform_store_failed 0x120`,
	`platform_store_disk_full 0x120`,
	`platform_store_disk_free_bytes 100000000000-100000x120`,
	`platform_store_disk_slow_total 3x120`,
	`platform_store_disk_wait_seconds 0.01x120`,
	`platform_store_damaged_files 0x120`,
	`platform_store_accepted_losses 0x120`,
	`platform_apiservice_repairs_total{field="caBundle"} 0x120`,
	`platform_store_revision 1+100x120`,
	`workqueue_depth{name="task"} 0x120`,
	`platform_store_write_stalls_total 2x120`,
	`platform_execution_event_append_failures_total{stream_type="task"} 0+6x120`,
	`platform_execution_events_appended_total{stream_type="task"} 0+600x120`,
	`platform_api_requests_total{status="200"} 0+600x120`,
	`platform_api_requests_total{status="404"} 0+600x120`,
	`platform_api_requests_total{status="503"} 0+6x120`,
	`platform_api_panics_total 1x120`,
	`platform_api_bodies_refused_total{reason="budget"} 4x120`,
	`platform_api_bodies_refused_total{reason="too_large"} 0+5x120`,
	`platform_compat_model_requests_total{provider="team/p",model="m"} 0+100x120`,
	`platform_compat_model_requests_unreported_total{provider="team/p",model="m"} 0+1x120`,
	`platform_worker_identity_proofs_total{outcome="proved"} 0+10x120`,
	`platform_worker_identity_proofs_total{outcome="refused"} 0+1x120`,
	`platform_worker_identity_proofs_total{outcome="failed"} 2x120`,
	`platform_router_routes_current 1x120`,
	`platform_gateway_ingress_total{result="accepted"} 0+60x120`,
	`platform_gateway_ingress_total{result="duplicate"} 0+20x120`,
	`platform_gateway_ingress_total{result="rejected"} 0+10x120`,
	`platform_gateway_ingress_total{result="deadLettered"} 2x120`,
	`platform_gateway_ingress_total{result="unauthorized"} 0+2x120`,
	`platform_gateway_ingress_total{result="unavailable"} 5x120`,
	`platform_gateway_ingress_total{result="limited"} 5x120`,
	`platform_gateway_dead_letters_total{kind="delivery"} 3x120`, // which was so before Prometheus looked
	`platform_gateway_queue_depth{kind="event"} 1x120`,
	`platform_gateway_queue_depth{kind="delivery"} 0x120`,
	`platform_gateway_queue_oldest_age_seconds{kind="event"} 0+60x50 0x69`,
	`platform_gateway_queue_oldest_age_seconds{kind="delivery"} 0+30x15 0x104`,
}

// cases are what makes each alert fire, and when it fires, in minutes after the start. The series replace the healthy ones of
// the same metric; one without values leaves the metric out.
var cases = []struct {
	name, alert string
	series      []string
	first, last int
}{
	{"failed", "PlatformStoreFailed", []string{`platform_store_failed 0x9 1x110`}, 10, 10},
	{"full", "PlatformDiskFull", []string{`platform_store_disk_full 0x9 1x110`}, 11, 11},
	{"full for a moment", "", []string{`platform_store_disk_full 0x9 1 0x109`}, 0, 0},
	{"fills up", "PlatformDiskFillsUp", []string{`platform_store_disk_free_bytes 100000000000-100000000x120`}, 31, 33},
	{"fills up slowly", "", []string{`platform_store_disk_free_bytes 100000000000-10000000x120`}, 0, 0},
	{"free space is not known", "", []string{`platform_store_disk_free_bytes 0x120`}, 0, 0},
	{"slow", "PlatformDiskSlow", []string{`platform_store_disk_slow_total 3x9 4x110`}, 11, 12},
	{"hangs", "PlatformDiskSlow", []string{`platform_store_disk_wait_seconds 0.01x9 30+60x110`}, 11, 11},
	{"damaged", "PlatformStoreDamaged", []string{`platform_store_damaged_files 0x9 1x110`}, 10, 10},
	// A loss is accepted when a server starts, so its series is a new one.
	{"lost", "PlatformStoreLost", []string{`platform_store_accepted_losses{pod="a"} 0x9 _x110`, `platform_store_accepted_losses{pod="b"} _x9 1x110`}, 9, 10},
	{"the APIService is changed", "PlatformAPIServiceChanged", []string{`platform_apiservice_repairs_total{field="caBundle"} 0x9 1x110`}, 10, 11},
	{"no server", "PlatformServerDown", []string{`platform_store_revision`}, 5, 5},
	{"the server restarts", "", []string{`platform_store_revision 1+100x9 _x3 1+100x107`}, 0, 0},
	{"no controller", "PlatformControllerDown", []string{`workqueue_depth{name="task"} 0x9 _x110`}, 15, 20},
	{"stalls", "PlatformWritesStall", []string{`platform_store_write_stalls_total 2x9 3+1x110`}, 20, 22},
	{"one stall", "", []string{`platform_store_write_stalls_total 2x9 3x110`}, 0, 0},
	{"events refused", "PlatformEventsRefused", []string{`platform_execution_event_append_failures_total{stream_type="task"} 0+100x120`}, 11, 13},
	{"all events refused", "PlatformEventsRefused", []string{`platform_execution_event_append_failures_total{stream_type="task"} 0+100x120`, `platform_execution_events_appended_total`}, 11, 13},
	{"few events", "", []string{`platform_execution_event_append_failures_total{stream_type="task"} 0+1x120`, `platform_execution_events_appended_total{stream_type="task"} 0+2x120`}, 0, 0},
	{"requests fail", "PlatformRequestsFail", []string{`platform_api_requests_total{status="200"} 0+600x120`, `platform_api_requests_total{status="500"} 0+20x120`, `platform_api_requests_total{status="507"} 0+30x120`}, 11, 13},
	{"requests of clients fail", "", []string{`platform_api_requests_total{status="200"} 0+6x120`, `platform_api_requests_total{status="422"} 0+600x120`}, 0, 0},
	{"panic", "PlatformRequestPanics", []string{`platform_api_panics_total 1x9 2x110`}, 10, 11},
	{"bodies", "PlatformBodiesRefused", []string{`platform_api_bodies_refused_total{reason="budget"} 4x9 5+1x110`}, 15, 17},
	{"unreported", "PlatformUsageUnreported", []string{`platform_compat_model_requests_unreported_total{provider="team/p",model="m"} 0+20x120`}, 16, 18},
	{
		"unreported by one of two", "PlatformUsageUnreported",
		[]string{
			`platform_compat_model_requests_total{provider="team/p",model="m"} 0+1000x120`, `platform_compat_model_requests_unreported_total{provider="team/p",model="m"} 0+1x120`,
			`platform_compat_model_requests_total{provider="team/q",model="m"} 0+10x120`, `platform_compat_model_requests_unreported_total{provider="team/q",model="m"} 0+10x120`,
		},
		16, 18,
	},
	{"identity", "PlatformWorkerIdentity", []string{`platform_worker_identity_proofs_total{outcome="failed"} 2x9 3+1x110`}, 15, 17},
	{"routes", "PlatformRoutesStale", []string{`platform_router_routes_current 1x9 0x110`}, 15, 15},
	{"dead letter", "PlatformGatewayDeadLetters", []string{`platform_gateway_dead_letters_total{kind="delivery"} 3x9 4x110`}, 10, 11},
	// The series of a kind is there from its first dead letter on.
	{"first dead letter", "PlatformGatewayDeadLetters", []string{`platform_gateway_dead_letters_total{kind="delivery"} 3x120`, `platform_gateway_dead_letters_total{kind="event"} _x10 1x110`}, 10, 11},
	{"dead letter at the door", "PlatformGatewayDeadLetters", []string{`platform_gateway_ingress_total{result="accepted"} 0+60x120`, `platform_gateway_ingress_total{result="deadLettered"} 2x9 3x110`}, 10, 11},
	{"first dead letter of a controller", "PlatformGatewayDeadLetters", []string{`platform_gateway_dead_letters_total{kind="event",pod="b"} _x55 1x64`, `platform_gateway_queue_depth{kind="event",pod="b"} _x50 1x69`}, 60, 62},
	{"adapter away", "PlatformGatewayDeliveriesWait", []string{`platform_gateway_queue_oldest_age_seconds{kind="delivery"} 0+60x120`}, 16, 17},
	{"events wait", "PlatformGatewayEventsWait", []string{`platform_gateway_queue_oldest_age_seconds{kind="event"} 0+60x120`}, 66, 67},
	{"gateway not ready", "PlatformGatewayNotReady", []string{`platform_gateway_ingress_total{result="accepted"} 0+60x120`, `platform_gateway_ingress_total{result="unavailable"} 5x9 6+1x110`}, 20, 22},
	{"gateway not ready for a moment", "", []string{`platform_gateway_ingress_total{result="accepted"} 0+60x120`, `platform_gateway_ingress_total{result="unavailable"} 5x9 8x110`}, 0, 0},
	{"events refused at the door", "PlatformGatewayEventsRefused", []string{`platform_gateway_ingress_total{result="accepted"} 0+60x120`, `platform_gateway_ingress_total{result="unauthorized"} 0+20x120`}, 16, 18},
	{"adapter with a wrong token", "PlatformGatewayEventsRefused", []string{`platform_gateway_ingress_total{result="unauthorized"} 0+1x120`}, 16, 18},
	{"events limited", "PlatformGatewayEventsLimited", []string{`platform_gateway_ingress_total{result="accepted"} 0+60x120`, `platform_gateway_ingress_total{result="limited"} 5x9 6+10x110`}, 20, 22},
	{"no gateways", "", []string{`platform_gateway_ingress_total`, `platform_gateway_dead_letters_total`, `platform_gateway_queue_depth`, `platform_gateway_queue_oldest_age_seconds`}, 0, 0},
	{"healthy", "", nil, 0, 0},
	{"no router", "", []string{`platform_router_routes_current`}, 0, 0},
}

// TestAlerts: each alert fires, at the time that its rule says, on series that show its problem, no other alert does, and none
// does on a healthy server.
func TestAlerts(t *testing.T) {
	file, names := ruleFile(t)
	tested := map[string]bool{}
	for _, c := range cases {
		tested[c.alert] = true
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			fired := firing(t, file, c.series)
			if _, ok := fired[c.alert]; !ok && c.alert != "" {
				t.Errorf("%s does not fire", c.alert)
			}
			for name, at := range fired {
				switch {
				case name != c.alert:
					t.Errorf("%s fires after %d minutes", name, at)
				case at < c.first || at > c.last:
					t.Errorf("%s fires after %d minutes, want %d to %d", name, at, c.first, c.last)
				}
			}
		})
	}
	for _, name := range names {
		if !tested[name] {
			t.Errorf("alert %s has no case", name)
		}
	}
}

// ruleFile writes the rules as a file of Prometheus, and returns the names of the alerts.
func ruleFile(t *testing.T) (file string, names []string) {
	t.Helper()
	data, err := os.ReadFile("../../manifests/monitoring/alerts.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var manifest struct {
		Spec struct {
			Groups []map[string]any `json:"groups"`
		} `json:"spec"`
	}
	if err := yaml.Unmarshal(data, &manifest); err != nil {
		t.Fatal(err)
	}
	for _, g := range manifest.Spec.Groups {
		for _, r := range g["rules"].([]any) {
			names = append(names, fmt.Sprint(r.(map[string]any)["alert"]))
		}
	}
	if data, err = yaml.Marshal(manifest.Spec); err == nil {
		file = filepath.Join(t.TempDir(), "rules.yaml")
		err = os.WriteFile(file, data, 0o600)
	}
	if err != nil || len(names) == 0 {
		t.Fatalf("%d alerts, %v", len(names), err)
	}
	return file, names
}

// metric is the name of the metric of a series.
func metric(series string) string { return series[:strings.IndexAny(series+" ", " {")] }

// firing returns the alerts that fire within two hours, with the minute of their first time.
func firing(t *testing.T, file string, series []string) map[string]int {
	t.Helper()
	load := []string{fmt.Sprintf("load %s", model.Duration(scrape))}
	for _, s := range slices.Concat(healthy, series) {
		replaced := slices.Contains(healthy, s) && slices.ContainsFunc(series, func(other string) bool { return metric(other) == metric(s) })
		if strings.Contains(s, " ") && (!replaced || slices.Contains(series, s)) {
			load = append(load, "  "+s)
		}
	}
	p := parser.NewParser(parser.Options{})
	suite, err := promqltest.NewLazyLoader(strings.Join(load, "\n"), promqltest.LazyLoaderOpts{EnableAtModifier: true, EnableNegativeOffset: true, Parser: p})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := suite.Close(); err != nil {
			t.Error(err)
		}
	}()
	m := rules.NewManager(&rules.ManagerOptions{
		QueryFunc: rules.EngineQueryFunc(suite.QueryEngine(), suite.Storage()), Context: context.Background(),
		NotifyFunc: func(context.Context, string, ...*rules.Alert) {}, Logger: slog.New(slog.DiscardHandler), Parser: p, NameValidationScheme: model.UTF8Validation,
	})
	groups, errs := m.LoadGroups(scrape, labels.EmptyLabels(), "", nil, false, file)
	if len(errs) > 0 {
		t.Fatal(errs)
	}
	first := map[string]int{}
	for minute := range 121 {
		at := time.Unix(0, 0).UTC().Add(time.Duration(minute) * scrape)
		suite.WithSamplesTill(at, func(err error) {
			if err != nil {
				t.Fatal(err)
			}
		})
		for _, g := range groups {
			for _, r := range g.Rules() {
				alert := r.(*rules.AlertingRule)
				if _, err := alert.Eval(suite.Context(), 0, at, rules.EngineQueryFunc(suite.QueryEngine(), suite.Storage()), &url.URL{}, 0); err != nil {
					t.Fatalf("%s: %v", alert.Name(), err)
				}
				if _, fired := first[alert.Name()]; !fired && slices.ContainsFunc(alert.ActiveAlerts(), func(a *rules.Alert) bool { return a.State == rules.StateFiring }) {
					first[alert.Name()] = minute
				}
			}
		}
	}
	return first
}

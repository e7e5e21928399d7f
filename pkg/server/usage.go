// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"errors"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	genericapiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/klog/v2"

	"github.com/platform-ai/platform/pkg/generated/clientset/versioned"
	"github.com/platform-ai/platform/pkg/storage/engine"
	"github.com/platform-ai/platform/pkg/storage/ledger"
)

const (
	// defaultUsageRetention is how long what was recorded about the use of models is kept.
	defaultUsageRetention = 90 * 24 * time.Hour
	// usageCleanup is the time between removals.
	usageCleanup = time.Hour
	// tasksPage is how many tasks are read at a time.
	tasksPage = 500
)

// keepUsage completes the ledger of an older store after the start, and removes old records from then on.
func (o *Options) keepUsage(g *genericapiserver.Config, st *Stores) error {
	tasks, err := versioned.NewForConfig(g.LoopbackClientConfig)
	if err != nil {
		return fmt.Errorf("usage: client of this server: %w", err)
	}
	return g.AddPostStartHook("platform-usage", func(hook genericapiserver.PostStartHookContext) error {
		go func() { // ends with the server
			log := klog.FromContext(hook)
			err := catchTasks(hook, tasks, st.Ledger)
			if err == nil {
				err = st.Ledger.Catch(hook, st.Events)
			}
			if err == nil {
				err = ledger.Indexer{Ledger: st.Ledger}.Index(hook)
			}
			if failed(hook, err) {
				log.Error(err, "The use of models by older tasks is recorded at the next start")
			}
			if o.UsageRetention == 0 && o.RecordingRetention == 0 {
				return
			}
			tick := o.Clock.NewTicker(usageCleanup)
			defer tick.Stop()
			for {
				o.expireUsage(hook, st)
				select {
				case <-hook.Done():
					return
				case <-tick.C():
				}
			}
		}()
		return nil
	})
}

// expireUsage removes old records, and what was said in the requests. That goes with the records at the latest.
func (o *Options) expireUsage(ctx context.Context, st *Stores) {
	log, now := klog.FromContext(ctx), o.Clock.Now()
	if o.UsageRetention > 0 {
		n, err := ledger.Retention{Ledger: st.Ledger}.Expire(ctx, now.Add(-o.UsageRetention))
		switch {
		case failed(ctx, err):
			log.Error(err, "Old records of the use of models are removed later")
		case n > 0:
			log.V(1).Info("Removed old records of the use of models", "cohorts", n)
		}
	}
	age := o.RecordingRetention
	if age == 0 || o.UsageRetention > 0 && o.UsageRetention < age {
		age = o.UsageRetention
	}
	n, err := st.Recordings.ExpireRequests(ctx, now.Add(-age))
	switch {
	case failed(ctx, err):
		log.Error(err, "Old recordings of requests to models are removed later")
	case n > 0:
		log.V(1).Info("Removed old recordings of requests to models", "days", n)
	}
}

// failed reports whether an error has another cause than the end of the server.
func failed(ctx context.Context, err error) bool {
	return err != nil && ctx.Err() == nil && !errors.Is(err, engine.ErrClosed)
}

// catchTasks records the tasks that were stored before there was a ledger.
func catchTasks(ctx context.Context, c versioned.Interface, l *ledger.Ledger) error {
	opts := metav1.ListOptions{Limit: tasksPage}
	for {
		page, err := c.CoreV1alpha1().Tasks(metav1.NamespaceAll).List(ctx, opts)
		if err != nil {
			return fmt.Errorf("list tasks: %w", err)
		}
		for i := range page.Items {
			if err := l.CatchTask(&page.Items[i]); err != nil {
				return err
			}
		}
		if opts.Continue = page.Continue; opts.Continue == "" {
			return nil
		}
	}
}

// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"github.com/spf13/pflag"
	"k8s.io/component-base/logs"

	"github.com/platform-ai/platform/pkg/controller"
	"github.com/platform-ai/platform/pkg/profiling"
	"github.com/platform-ai/platform/pkg/server/aggregated"
	"github.com/platform-ai/platform/pkg/server/router"
	"github.com/platform-ai/platform/pkg/server/standalone"
)

// programs are the programs that an operator starts, with the funcs that add
// their flags.
var programs = []struct {
	name, about string
	add         func(*pflag.FlagSet)
}{
	{"platform-standalone", "The whole platform on one machine.", func(fs *pflag.FlagSet) { standalone.NewOptions().AddFlags(fs) }},
	{"platform-apiserver", "The API server in a cluster.", func(fs *pflag.FlagSet) { aggregated.NewOptions().AddFlags(fs) }},
	{"platform-controller", "The controllers in a cluster.", func(fs *pflag.FlagSet) { controller.NewClusterOptions().AddFlags(fs) }},
	{"platform-router", "One address for the model APIs of many installations.", func(fs *pflag.FlagSet) { router.NewOptions().AddFlags(fs) }},
}

// flags describes the flags of every program that serves.
func flags(string) (string, error) {
	p := &page{}
	p.heading(1, "Flags of the programs")
	for _, program := range programs {
		p.heading(2, program.name)
		p.text("%s", program.about)
		fs := pflag.NewFlagSet(program.name, pflag.ContinueOnError)
		program.add(fs)
		addFlags(p, fs)
	}
	p.heading(2, "Every program above")
	fs := pflag.NewFlagSet("all", pflag.ContinueOnError)
	logs.AddFlags(fs)
	addFlags(p, fs)
	p.heading(2, "platform-worker")
	p.text("An executor starts it and tells it everything through its environment, which package `pkg/runspec` describes. " +
		"`platform-worker install FOLDER` copies the program into a folder. To set the flag, give `platform-standalone` a script as `--worker-binary`. " +
		"`platform-worker-command` is the same, but only for tasks of type container, and starts faster.")
	fs = pflag.NewFlagSet("platform-worker", pflag.ContinueOnError)
	new(profiling.Address).AddFlag(fs)
	addFlags(p, fs)
	return p.String(), nil
}

// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// Package aggregated runs the API server in a cluster, where kube-apiserver proxies the requests of the group
// core.platform.ai to it. The cluster authenticates and authorizes callers: kube-apiserver names the callers of
// requests that it proxies, clients that connect directly to this server are authenticated by TokenReview, and
// permissions are checked by SubjectAccessReview. Namespaces, the configuration of admission, quotas and FlowSchemas
// are read from the cluster. Admission runs in this process, because the cluster's own never sees the objects of this
// server.
//
// The controllers run in another program, platform-controller. Discovery, garbage collection and the deletion of namespaces
// in the whole cluster depend on this API, so a controller must never take it down. Package standalone is the same server
// for one machine: it runs the controllers itself, and package host takes the place of the cluster.
//
//	options.go       flags and their rules
//	delegate.go      identities and permissions
//	rules.go         what a caller may do, as the cluster answers
//	worker.go        which task a worker belongs to
//	admission.go     the chain of admission
//	certificate.go   the serving certificate
//	secrets.go       the names of the cluster's Secrets
//	identity.go      which store is served under the APIService
//	registration.go  the APIService: its CA bundle, its availability after a restart, and repairs of it
//	serving.go       which of the Pods that share a store serves
//	run.go           the order in which a server starts
//
// Its ServiceAccount needs, in the cluster:
//
//	ClusterRole system:auth-delegator                              tokenreviews, subjectaccessreviews: create
//	configmaps extension-apiserver-authentication (kube-system)    get, list, watch
//	namespaces                                                     get, list, watch
//	resourcequotas                                                 get, list, watch
//	resourcequotas/status                                          update
//	admissionregistration.k8s.io: mutatingwebhookconfigurations, validatingwebhookconfigurations,
//	  validatingadmissionpolicies, validatingadmissionpolicybindings,
//	  mutatingadmissionpolicies, mutatingadmissionpolicybindings   get, list, watch
//	flowcontrol.apiserver.k8s.io: flowschemas, prioritylevelconfigurations   get, list, watch
//	flowcontrol.apiserver.k8s.io: flowschemas/status               patch
//	apiregistration.k8s.io: apiservices v1alpha1.core.platform.ai  get, list, watch, create, patch
//	pods; batch: jobs                                              get (to find which task a worker belongs to)
//	pods NAME-0 to NAME-2 in its own namespace, with --pod-name    patch (which of them serves)
//	secrets                                                        get (keys of Providers), list (their names, for REST), create
//	                                                               (transaction tokens of tasks)
//	configmaps SERVICE-ca in its own namespace                     get, list, watch, create, patch (the CA for clients
//	                                                               that connect directly)
//
// Kinds that are parameters of policies also need get, list and watch. The administrator who binds such a policy
// grants that.
package aggregated

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/platform-ai/platform/pkg/server"
	"github.com/platform-ai/platform/pkg/workerpod"
)

const (
	// DefaultPort is the default port of the API.
	DefaultPort = 8443
	// DefaultService is the Service through which kube-apiserver reaches this server.
	DefaultService = "platform-apiserver"
	// DefaultLockTimeout is how long a starting server waits for its predecessor to release the store.
	DefaultLockTimeout = 30 * time.Second
)

// Options configure a server in a cluster.
type Options struct {
	server.Options
	// Kubeconfig is the path of the kubeconfig for the cluster; empty uses the pod's own ServiceAccount.
	Kubeconfig string
	// Namespace is the server's own namespace. Default: that of the pod.
	Namespace string
	// ServiceName is the Service in Namespace that kube-apiserver calls.
	ServiceName string
	// Pod is the name of this server's Pod, if the Service selects by LabelServing; empty if it selects by readiness.
	Pod string
	// ManageAPIService maintains the APIService of the group. It also keeps this server from being ready while
	// another store than its own is registered there.
	ManageAPIService bool
	// TakeOver is the identity of the registered store that this server's store may replace on the APIService.
	// "unknown" stands for the store of an APIService that names none.
	TakeOver string
	// CertFile and KeyFile are the operator's own serving certificate. If they are empty, the server creates one.
	CertFile, KeyFile string
	// TLSNames are additional names and addresses for a serving certificate that the server creates.
	TLSNames []string
	// PriorityAndFairness shares the server's capacity among callers according to the cluster's FlowSchemas.
	PriorityAndFairness bool
	// SecureProfiling also serves /debug/pprof on the secure port.
	SecureProfiling bool

	// Ready, if set, is called once the server answers; an error stops the server.
	Ready func(ctx context.Context, i Info) error
}

// Info describes where a running server can be reached.
type Info struct {
	// URL is the address of the API on this machine; RESTURL is that of the listener without TLS, if there is one.
	URL, RESTURL string
	// CA verifies the serving certificate, as PEM; nil if the certificate was given by the operator.
	CA []byte
}

// NewOptions returns the default options.
func NewOptions() *Options {
	return &Options{
		Options:     server.Options{DataDir: "/data", BindAddress: "0.0.0.0", Port: DefaultPort, Console: true, Gateways: server.Gateways{Enabled: true}, LockTimeout: DefaultLockTimeout, Chat: server.ChatDefaults()},
		ServiceName: DefaultService, ManageAPIService: true, PriorityAndFairness: true,
	}
}

// AddFlags binds the options that an operator sets to flags.
func (o *Options) AddFlags(fs *pflag.FlagSet) {
	o.Options.AddFlags(fs)
	fs.DurationVar(&o.LockTimeout, "lock-timeout", o.LockTimeout, "how long the start waits while another server uses the data folder; 0 does not wait")
	fs.StringVar(&o.Kubeconfig, "kubeconfig", o.Kubeconfig, "kubeconfig file that reaches the cluster (default: the pod's own ServiceAccount)")
	fs.StringVar(&o.Namespace, "namespace", o.Namespace, "namespace of this server and its Service (default: the pod's own)")
	fs.StringVar(&o.ServiceName, "service-name", o.ServiceName, "Service through which kube-apiserver reaches this server; the certificate that is made has its names")
	fs.StringVar(&o.Pod, "pod-name", o.Pod, "name of this server's Pod, where the Service selects by the label "+LabelServing+": the server puts it on its Pod when it has the store, and is ready, as a Pod, while it waits for a server that serves")
	fs.BoolVar(&o.ManageAPIService, "manage-apiservice", o.ManageAPIService, "keep the APIService in order: register this server's store on it, write the CA of the certificate that is made into it, make it again when it is deleted, and have kube-apiserver look at this server as soon as it is ready. The server is not ready while another store is registered")
	fs.StringVar(&o.TakeOver, "take-over", o.TakeOver, "ID of the store that is registered on the APIService and gone for good, which this server's store replaces; \"unknown\" if none is named there. /readyz/registration and the log have the ID")
	fs.StringVar(&o.CertFile, "tls-cert-file", o.CertFile, "serving certificate that is issued elsewhere, for instance by cert-manager, which then writes the CA into the APIService, too; read again when it changes (default: one is made in the data folder, and renewed)")
	fs.StringVar(&o.KeyFile, "tls-private-key-file", o.KeyFile, "key of --tls-cert-file")
	fs.StringSliceVar(&o.TLSNames, "tls-name", o.TLSNames, "further DNS name or IP address of the certificate that is made; repeatable")
	fs.BoolVar(&o.PriorityAndFairness, "enable-priority-and-fairness", o.PriorityAndFairness, "share this server among its callers as the cluster's FlowSchemas say, instead of by two limits of requests in flight")
	fs.BoolVar(&o.SecureProfiling, "profiling", o.SecureProfiling, "serve /debug/pprof on the secure port, to those whose role names it; --profiling-bind-address serves it on loopback")
}

// complete checks the options and derives the remaining ones.
func (o *Options) complete() error {
	if err := o.Complete(); err != nil {
		return err
	}
	if o.Namespace == "" {
		own, err := workerpod.OwnNamespace()
		if err != nil {
			return fmt.Errorf("--namespace is needed outside a pod: %w", err)
		}
		o.Namespace = own
	}
	if msgs := validation.IsDNS1123Label(o.Namespace); len(msgs) > 0 {
		return fmt.Errorf("--namespace: %q: %s", o.Namespace, strings.Join(msgs, ", "))
	}
	o.Chat.Blocked = []string{o.Namespace} // models must not work where the server itself runs
	if msgs := validation.IsDNS1035Label(o.ServiceName); len(msgs) > 0 {
		return fmt.Errorf("--service-name: %q: %s", o.ServiceName, strings.Join(msgs, ", "))
	}
	if o.Pod != "" {
		if msgs := validation.IsDNS1123Subdomain(o.Pod); len(msgs) > 0 {
			return fmt.Errorf("--pod-name: %q: %s", o.Pod, strings.Join(msgs, ", "))
		}
		o.ReadyWhileWaiting = true
	}
	if o.TakeOver != "" && !o.ManageAPIService {
		return errors.New("--take-over changes the APIService, and --manage-apiservice=false leaves it to somebody else")
	}
	if (o.CertFile == "") != (o.KeyFile == "") {
		return errors.New("--tls-cert-file and --tls-private-key-file belong together")
	}
	if o.CertFile != "" && len(o.TLSNames) > 0 {
		return errors.New("--tls-name is for the certificate that is made, and --tls-cert-file gives one")
	}
	return nil
}

// client returns the configuration of clients of the cluster.
func (o *Options) client() (*rest.Config, error) {
	c, err := rest.InClusterConfig()
	if o.Kubeconfig != "" {
		c, err = clientcmd.BuildConfigFromFlags("", o.Kubeconfig)
	}
	switch {
	case o.Kubeconfig != "" && err != nil:
		return nil, fmt.Errorf("--kubeconfig: %w", err)
	case err != nil:
		return nil, fmt.Errorf("--kubeconfig is needed outside a pod: %w", err)
	}
	// Requests to this server wait for the answers to these clients, so their own rate limit is far above the
	// expected rate.
	c.QPS, c.Burst = 200, 400
	return rest.AddUserAgent(c, DefaultService), nil
}

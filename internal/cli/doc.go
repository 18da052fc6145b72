// Package cli answers: what did the user ask, and how is the answer shown?
//
// It is the command tree of skomer. A command turns flags and configuration into calls of the public Go API and prints what
// comes back; it decides nothing about tables or indexes. Standard output holds the answer alone, standard error everything
// else, so that both can be piped.
package cli

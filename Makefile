SWIFT := swift
SOURCES := Package.swift $(wildcard Sources Tests Examples docs)
# Optimised: the tests live thousands of lives of a cache, and a run costs a third of the time.
CHECKED := -Xswiftc -O -Xswiftc -warnings-as-errors -Xswiftc -DENGINE_CHECKS
TSAN := --sanitize=thread --scratch-path .build/tsan -Xswiftc -O -Xswiftc -DENGINE_CHECKS

.DEFAULT_GOAL := check
.PHONY: help setup check format lint build test flags run-tests docs independence bench thresholds tsan crash simulate fuzz

help:  ## list the targets
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*##/ -/'

setup:  ## install the system packages the build needs, or say which are missing
	@perf/setup

check: setup lint build docs run-tests independence thresholds  ## everything a change must pass; CI runs this

format:  ## rewrite the sources in house style
	$(SWIFT) format --in-place --parallel --recursive $(SOURCES)

lint:  ## style, without rewriting
	$(SWIFT) format lint --strict --parallel --recursive $(SOURCES)

build: setup  ## all targets with their tests; warnings are errors
	$(SWIFT) build --build-tests $(CHECKED)

test: build run-tests  ## unit, model, golden and tidy tests, with the O(n) invariants on

flags:
	@echo $(CHECKED)

run-tests:
	@perf/setup tests || true  # the tests that need it say so
	@Tests/run $(CHECKED)

bench: setup  ## the quick suite: one table, and a report in perf/out/
	@perf/quick

thresholds: setup  ## allocations per operation, against perf/thresholds.json
	$(SWIFT) build -c release --product bench-cli
	$$($(SWIFT) build -c release --show-bin-path)/bench-cli run --smoke --thresholds perf/thresholds.json

independence:  ## what a program that uses CacheEngine alone links: no Foundation, no libcurl
	@.ci/independence

docs:  ## the documentation of all products; warnings fail
	@docs/build

SEEDS ?= 1000000
SIZE ?= brief

simulate: setup  ## SEEDS=n lives of a cache from seeds 0...; SEED=k repeats one; SIZE=long for longer ones
	$(SWIFT) build -c release --product simulate
	SWIFT_DETERMINISTIC_HASHING=1 $$($(SWIFT) build -c release --show-bin-path)/simulate \
		$(if $(SEED),$(SEED) 1,0 $(SEEDS)) $(SIZE)

# What has no threads (values, documents, replays), and what holds bytes or seconds to a bound: under
# the sanitizer both are its own.
NOT_UNDER_TSAN := ^(HTTPCachingTests|TidyTests)\.|ReplayHitRatioTests|AllocationTests|FootprintTests|CurlOriginEnduranceTests|slowReaderIsBoundedByAnError

tsan: setup  ## the concurrency tests, which is all but a few, under ThreadSanitizer
	$(SWIFT) build --build-tests $(TSAN)
	Tests/run $(TSAN) --skip '$(NOT_UNDER_TSAN)'

ROUNDS := 200
crash: build  ## kill a real process ROUNDS times (make crash ROUNDS=200) and check what it left
	CRASH_ROUNDS=$(ROUNDS) $(SWIFT) test --skip-build $(CHECKED) --filter CrashTests

fuzz:  ## random bytes at every parser (make fuzz FUZZ_SECONDS=600)
	FUZZ_SECONDS=$(or $(FUZZ_SECONDS),20) Fuzz/run

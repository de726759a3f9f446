SWIFT := swift
SOURCES := Package.swift $(wildcard Sources Tests Examples Adapters docs)
# Optimised, because the tests simulate thousands of cache lives: a run takes a third of the time.
CHECKED := -Xswiftc -O -Xswiftc -assert-config -Xswiftc Debug -Xswiftc -warnings-as-errors -Xswiftc -DENGINE_CHECKS
TSAN := --sanitize=thread --scratch-path .build/tsan -Xswiftc -O -Xswiftc -assert-config -Xswiftc Debug -Xswiftc -DENGINE_CHECKS

.DEFAULT_GOAL := check
.PHONY: help setup check format lint build test flags run-tests docs proxy independence bench thresholds tsan crash fleet simulate fuzz mutants

help:  ## list the targets
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*##/ -/'

setup:  ## install the system packages for the build, or list the missing ones
	@perf/setup

check: setup lint build docs run-tests independence thresholds  ## everything that a change must pass; CI runs it too

format:  ## format the sources
	$(SWIFT) format --in-place --parallel --recursive $(SOURCES)

lint:  ## check the style of the sources without changing them
	$(SWIFT) format lint --strict --parallel --recursive $(SOURCES)

build: setup  ## build all targets with their tests; warnings are errors
	$(SWIFT) build --build-tests $(CHECKED)

test: build run-tests  ## run all tests, with the O(n) checks of invariants

flags:
	@echo $(CHECKED)

run-tests:
	@perf/setup tests || true  # tests without these packages report it
	@Tests/run $(CHECKED)

bench: setup  ## run the quick benchmarks: prints a table and writes a report to perf/out/
	@perf/quick $(SCALE)

thresholds: setup  ## compare the allocations per operation with perf/thresholds.json
	$(SWIFT) build -c release --product bench-cli
	"$$($(SWIFT) build -c release --show-bin-path)/bench-cli" run --smoke --thresholds perf/thresholds.json

proxy: setup  ## build cache-proxy as it is deployed, to .build/static/release
	$(SWIFT) build -c release --product cache-proxy --static-swift-stdlib --scratch-path .build/static

independence:  ## check that a program with CacheEngine alone links neither Foundation nor libcurl
	@.ci/independence

docs:  ## build the documentation of all products; warnings are errors
	@docs/build

SEEDS ?= 1000000
SIZE ?= brief

# With the asserts and the checks of invariants, which a release build leaves out.
simulate: setup  ## simulate cache lives for the seeds 0..<SEEDS; SEED=k repeats one; SIZE=long is longer, SIZE=fleet several machines
	$(SWIFT) build --product simulate $(CHECKED)
	SWIFT_DETERMINISTIC_HASHING=1 "$$($(SWIFT) build --show-bin-path $(CHECKED))/simulate" \
		$(if $(SEED),$(SEED) 1,0 $(SEEDS)) $(SIZE)

# Tests without threads (values, documents, replays, the oracle, simulations), and tests that bound bytes or seconds,
# which the sanitizer changes: also those of HAProxy, whose health checks have limits, and those of fleets of
# proxies, whose reports nobody reads.
NOT_UNDER_TSAN := ^(HTTPCachingTests|SimulationTests|TidyTests)\.|\.OracleTests/|ReplayHitRatioTests|AllocationTests|FootprintTests|CurlOriginEnduranceTests|\.FleetTests/|PurgeLogTests|FleetOverClusterTests|slowReaderIsBoundedByAnError|FleetChaosTests|FleetProcessTests|ReadmeTests

tsan: setup  ## run all tests with concurrency under ThreadSanitizer (make tsan PART=0/2 runs half of them)
	$(SWIFT) build --build-tests $(TSAN)
	PART=$(PART) Tests/run $(TSAN) --skip '$(NOT_UNDER_TSAN)'

ROUNDS := 200
crash: build  ## kill a process ROUNDS times (make crash ROUNDS=200) and check its files
	CRASH_ROUNDS=$(ROUNDS) SWIFT=$(SWIFT) Tests/some --skip-build $(CHECKED) --filter CrashTests

fleet: build  ## run the tests of several machines over real Redis servers, with all their rounds
	@perf/setup tests
	FLEET_ROUNDS=all SWIFT=$(SWIFT) Tests/some --skip-build --no-parallel $(CHECKED) --filter 'CacheEngineRedisTests|RedisClientTests|FleetChaosTests'

fuzz:  ## fuzz every parser (make fuzz FUZZ_SECONDS=600)
	FUZZ_SECONDS=$(or $(FUZZ_SECONDS),20) Fuzz/run

mutants: setup  ## check that the tests catch each deliberate bug (PART=k/n for a part)
	@SWIFT=$(SWIFT) Tests/mutants $(PART)

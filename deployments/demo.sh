#!/usr/bin/env bash
# Shows Suanpan on this machine: starts everything with an embedded Kafka and ClickHouse, loads an
# example catalog, replays a fleet's usage, and prints what it costs. `make demo` calls it.
#
#   TRACE=FILE  replay the pod list of the Alibaba GPU trace of 2023 instead of a generated fleet
#   DAYS=N      days of the generated fleet (30)
#   KEEP=1      keep the data folder
#
# On a terminal it goes on serving until Ctrl-C, so that you can look around; else it ends.
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
example=$root/deployments/example
suanpan=$root/bin/suanpan
data=
serve=

die() {
  echo "demo: $*" >&2
  exit 1
}

say() { echo "demo: $*" >&2; }

# clean stops what was started. Only the folder that this run made is removed.
clean() {
  trap - EXIT INT TERM
  if [ -n "$serve" ] && kill -0 "$serve" 2>/dev/null; then
    kill "$serve" 2>/dev/null || true
    wait "$serve" 2>/dev/null || true
  fi
  [ -n "$data" ] || return 0
  if [ "${KEEP:-}" = 1 ]; then
    say "the data is kept: bin/suanpan serve --data $data"
  else
    rm -rf "$data"
    rmdir "$root/.demo" 2>/dev/null || true # another demo may be running
  fi
}

# port NUMBER prints the first port from NUMBER on that nobody listens on.
port() {
  local number=$1
  while (exec 3<>"/dev/tcp/127.0.0.1/$number") 2>/dev/null; do
    number=$((number + 1))
  done
  [ "$number" = "$1" ] || say "port $1 is taken, using $number"
  echo "$number"
}

# alive fails with the end of the log when the services have ended.
alive() {
  kill -0 "$serve" 2>/dev/null && return
  tail -n 20 "$data/serve.log" >&2
  die "suanpan serve has ended"
}

# sql QUERY asks ClickHouse.
sql() { curl --silent --show-error --fail-with-body "$url" --data-binary "$1"; }

# metric NAME prints the sum of a metric of the services.
metric() {
  curl --silent --fail "http://127.0.0.1:$admin_port/metrics" |
    awk -v name="$1" '$1 ~ "^" name "([{]|$)" { sum += $2 } END { printf "%.0f\n", sum }'
}

start() {
  mkdir -p "$root/.demo"
  data=$(mktemp -d "$root/.demo/run.XXXXXX")
  kafka_port=$(port 9092)
  clickhouse_port=$(port 8123)
  admin_port=$(port 9100)
  kafka=127.0.0.1:$kafka_port
  url="http://127.0.0.1:$clickhouse_port/?database=suanpan"
  say "starting everything; its log is $data/serve.log"
  # Nobody waits for live events here, so the last ones need not wait for others to come.
  "$suanpan" serve --data "$data" --kafka-listen "$kafka" \
    --clickhouse-listen "127.0.0.1:$clickhouse_port" --admin "127.0.0.1:$admin_port" \
    --flush-live 1s --settle-every 1s >"$data/serve.log" 2>&1 &
  serve=$!
  until curl --silent --fail --output /dev/null "http://127.0.0.1:$admin_port/readyz"; do
    alive
    sleep 0.2
  done
}

# fill loads prices and tenants, then the fleet's usage.
fill() {
  say "applying $example/catalog.yaml"
  "$suanpan" apply --kafka "$kafka" --replay -f "$example/catalog.yaml" >"$data/apply.log"
  if [ -f "$example/market.jsonl" ]; then
    "$suanpan" send --kafka "$kafka" --replay "$example/market.jsonl" >/dev/null
  fi
  if [ -n "${TRACE:-}" ]; then
    say "replaying $TRACE into Kafka"
    fleet=(--trace "$TRACE")
  else
    say "replaying ${DAYS:-30} days of a generated fleet into Kafka"
    fleet=(--generate --days "${DAYS:-30}")
  fi
  sent=$("$suanpan" replay --kafka "$kafka" "${fleet[@]}")
  sent=${sent%% *}
}

# caught_up says whether all that was sent is rated, archived and settled.
caught_up() {
  [ "$(metric suanpan_rater_events_total)" -ge "$sent" ] &&
    [ "$(metric suanpan_rater_pending_rows)" = 0 ] &&
    [ "$(metric suanpan_archiver_records_total)" -ge "$sent" ] &&
    [ "$(sql 'SELECT (SELECT sum(arraySum(quantity)) FROM settlements FINAL)
      = (SELECT sum(base_quantity) FROM line_items)')" = 1 ]
}

show() {
  local dead
  dead=$(sql 'SELECT count() FROM dead_letters')
  echo
  echo "Spend per tenant"
  sql "SELECT tenant, sessions, leftPad(toDecimalString(gpu_seconds / 3600, 2), 10) AS gpu_hours,
      leftPad(toDecimalString(total, 2), 12) AS amount, currency
    FROM (SELECT tenant, uniqExact(session) AS sessions, any(currency) AS currency,
        sumIf(base_quantity, sku = 'gpu.openb') AS gpu_seconds, sum(amount) AS total
      FROM line_items GROUP BY tenant)
    ORDER BY total DESC FORMAT PrettySpaceNoEscapes"
  echo
  echo "The ten dearest line items"
  sql "SELECT tenant, session, sku, purchase, band, usage_start,
      leftPad(toDecimalString(quantity / 3600, 3), 10) AS unit_hours,
      leftPad(toDecimalString(cost, 4), 10) AS amount, currency
    FROM (SELECT *, base_quantity AS quantity, amount AS cost FROM line_items
      ORDER BY cost DESC, tenant, session, usage_start LIMIT 10)
    FORMAT PrettySpaceNoEscapes"
  echo
  echo "$sent usage events are now $(sql 'SELECT count() FROM line_items') line items, with" \
    "$dead dead letters: $filled s to fill Kafka, $rated s in all until everything was rated," \
    "archived and settled."
}

hints() {
  cat <<TEXT

Look further. With curl:

  curl '$url' -d 'SELECT day, currency, sum(amount) FROM spend_daily GROUP BY ALL ORDER BY day FORMAT PrettySpaceNoEscapes'

In SQL, from any client of ClickHouse's HTTP interface at 127.0.0.1:$clickhouse_port:

  SELECT sku, purchase, band, sum(amount) AS amount FROM suanpan.line_items GROUP BY ALL ORDER BY amount DESC

Close a month and look at its invoices (see bin/suanpan invoice --help):

  export SUANPAN_KAFKA=$kafka SUANPAN_CLICKHOUSE=http://127.0.0.1:$clickhouse_port/suanpan
  bin/suanpan close --period \$(curl -s '$url' -d 'SELECT min(billing_period) FROM line_items')
  bin/suanpan invoice download INV-$(date +%Y)-1 --format pdf --out invoice.pdf

The exact bill of a tenant, by charge:

  bin/suanpan summary --kafka $kafka --clickhouse http://127.0.0.1:$clickhouse_port/suanpan --tenant tenant-00

TEXT
}

main() {
  for tool in go curl make; do
    command -v "$tool" >/dev/null || die "needs $tool"
  done
  [ -z "${TRACE:-}" ] || [ -f "$TRACE" ] || die "TRACE names no file: $TRACE"
  SUANPAN_LIBCHDB=$("$root/deployments/setup/libchdb.sh")
  export SUANPAN_LIBCHDB
  say "building bin/suanpan"
  make -s -C "$root" build
  trap clean EXIT
  trap 'exit 130' INT
  trap 'exit 143' TERM
  start
  SECONDS=0
  fill
  filled=$SECONDS
  say "rating"
  until caught_up; do
    alive
    sleep 0.5
  done
  rated=$SECONDS
  show
  hints
  if [ -t 1 ]; then
    trap 'exit 0' INT TERM
    say "serving until Ctrl-C"
    wait "$serve" || true
    alive
  fi
}

main "$@"

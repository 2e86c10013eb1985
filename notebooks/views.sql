-- Five views of a recording, in DuckDB's SQL. They read a table called events, which holds the
-- native file: one row is one event (doc.go of package trace documents the columns).
-- In Python, with the packages duckdb and pyarrow:
--
--   import duckdb, pyarrow as pa
--   with pa.OSFile("run.arrows") as file, pa.ipc.open_stream(file) as stream:
--       rows = stream.read_all()
--   db = duckdb.connect()
--   db.execute("create table events as from rows")
--   db.execute(open("views.sql").read())
--   db.sql("select space, max(reachable), max(held) from live group by space").show()
--
-- A file of version 1 has numbers in place of words; replay import OLD -o NEW converts it. Sizes are in
-- bytes. Times are in microseconds, rounded down, because DuckDB's intervals have no nanoseconds. Events of
-- the same microsecond keep the order of the file.

-- live: the bytes after each event that changes them, and at each cycle. reachable counts bytes that were
-- neither dropped nor freed. held also counts garbage until it is freed. In a recording without frees, a drop
-- frees the bytes. reserved counts bytes that the pool took from its upstream. row is the number of the event.
create or replace view live as
with ends as (
	select *, row_number() over (partition by id order by time, rowid) = 1 as first
	from (select rowid, * from events where kind in ('drop', 'free'))
), changes as (
	select e.rowid as row, epoch_us(e.time) as time_us, e.space, e.kind,
		case when e.kind = 'alloc' then e.bytes when d.first then -coalesce(a.bytes, 0) else 0 end as reachable,
		case when e.kind = 'alloc' then e.bytes
			when e.kind = 'free' then -e.bytes
			when d.first and not exists (from events where kind = 'free') then -coalesce(a.bytes, 0)
			else 0 end as held,
		case e.kind when 'reserve' then e.bytes when 'release' then -e.bytes else 0 end as reserved
	from (select rowid, * from events where kind in ('alloc', 'drop', 'free', 'reserve', 'release', 'cycle')) e
	left join ends d on d.rowid = e.rowid
	left join (select id, bytes from events where kind = 'alloc') a on d.id = a.id
)
select time_us, row, space,
	sum(reachable) over w as reachable, sum(held) over w as held, sum(reserved) over w as reserved
from changes
window w as (partition by space order by time_us, row rows unbounded preceding)
order by time_us, row;

-- pauses: how long cycles held the program beyond its own waits, in recordings of package gc.
create or replace view pauses as
select epoch_us(time) as time_us, epoch_us(duration) as duration_us, space
from events
where kind = 'mark' and label = 'exposed pause'
order by time_us;

-- cycles: the trigger and the yield of each, and the bytes held when it began.
create or replace view cycles as
select epoch_us(c.time) as time_us, epoch_us(c.duration) as duration_us, c.space,
	case c.aux when 0 then 'policy' when 1 then 'refusal' when 2 then 'natural' else 'explicit' end as trigger,
	c.bytes as yield, l.held
from (select rowid, * from events where kind = 'cycle') c
join live l on l.row = c.rowid
order by time_us;

-- sites: the objects of each allocation site.
create or replace view sites as
with ends as (select id, min(time) as time from events where kind in ('drop', 'free') group by id)
select a.space, a.label as site, count(*) as objects, sum(a.bytes) as bytes,
	count(*) - count(d.id) as objects_at_end, coalesce(sum(a.bytes) filter (d.id is null), 0) as bytes_at_end,
	quantile_disc(epoch_us(d.time) - epoch_us(a.time), 0.5) as median_life_us -- of the objects that ended
from (from events where kind = 'alloc') a
left join ends d on d.id = a.id
group by a.space, a.label
order by bytes desc;

-- waits: the number and the lengths of the waits at each place.
create or replace view waits as
select label as place, stream, count(*) as waits, sum(epoch_us(duration)) as total_us,
	quantile_disc(epoch_us(duration), 0.5) as median_us, max(epoch_us(duration)) as longest_us
from events
where kind = 'sync'
group by label, stream
order by total_us desc;

#!/bin/sh
# PACKAGE0064 postgresql: makes a cluster of databases, serves it over a Unix socket, and queries it with transactions, joins and indexes
bin=$(echo /usr/lib/postgresql/*/bin)
chown postgres /tmp/work
as() { setpriv --reuid postgres --regid postgres --init-groups env HOME=/tmp/work "$@"; }
as "$bin/initdb" -D /tmp/work/data -A trust --no-locale -E UTF8 -N >initdb.log 2>&1; echo "initdb $?"
printf "unix_socket_directories = '/tmp/work'\nlisten_addresses = ''\n" >>data/postgresql.conf
as "$bin/pg_ctl" -D /tmp/work/data -w -t 120 -l /tmp/work/log start >start.log; echo "start $?"
as createdb -h /tmp/work shop; echo "createdb $?"
q() { as psql -h /tmp/work -X -q -v ON_ERROR_STOP=1 shop "$@" 2>&1; }
q <<'END'
create table item (id serial primary key, name text unique not null, price numeric(8,2) check (price > 0));
create table sale (item int references item, amount int, day date);
insert into item (name, price) values ('apple', 0.50), ('pear', 0.75), ('plum', 0.20);
insert into sale select 1 + i % 3, i, date '2024-01-01' + i from generate_series(1, 3000) i;
create index on sale (day);
analyze;
select name, sum(amount * price) as income from item join sale on item.id = sale.item group by name order by name;
begin; delete from sale; select count(*) from sale; rollback;
select count(*), max(day) from sale;
select count(*) from sale where day between '2025-01-01' and '2025-12-31';
create view cheap as select * from item where price < 0.6; table cheap order by id;
create function twice(int) returns int language plpgsql as $$ begin return 2 * $1; end $$; select twice(21);
select jsonb_build_object('a', array[1, 2]) -> 'a' -> 1 as second, regexp_replace('macadamia', 'a', 'o', 'g');
END
q -c "insert into item (name, price) values ('fig', -1)"; echo "refused $?"
q -c "insert into sale values (9, 1, now())" | head -1
(q -c "begin; update item set price = price + 1 where id = 1; select pg_sleep(2); commit" >/dev/null) & sleep 1
q -c "update item set price = price * 2 where id = 1 returning price"; wait
for n in 1 2 3 4; do q -c "insert into sale select $n % 3 + 1, i, '2030-01-01' from generate_series(1, 100) i" & done; wait
q -At -c "select count(*) from sale where day = '2030-01-01'"
q -At -c "copy (select * from item order by id) to stdout with csv"
as pg_dump -h /tmp/work shop >dump.sql; echo "pg_dump $? $(grep -c '^CREATE' dump.sql)"
as createdb -h /tmp/work copy; as psql -h /tmp/work -X -q copy <dump.sql >/dev/null; as psql -h /tmp/work -X -At copy -c 'select count(*) from sale'
kill -9 $(head -1 data/postmaster.pid); sleep 3
as "$bin/pg_ctl" -D /tmp/work/data -w -t 120 -l /tmp/work/log start >/dev/null 2>&1; echo "restart $?"
q -At -c 'select count(*) from sale'
grep -c 'automatic recovery in progress' log
as "$bin/pg_ctl" -D /tmp/work/data -w -m fast stop; echo "stop $?"
q -c 'select 1' | cut -d: -f1-2 | head -1

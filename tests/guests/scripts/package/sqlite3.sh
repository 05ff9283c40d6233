#!/bin/sh
# PACKAGE0005 sqlite3: makes a database with an index, a view, a trigger, full text and a transaction that is undone
sqlite3 data.db <<'END'
create table person (id integer primary key, name text unique, age int check (age > 0));
create index by_age on person (age);
create view old as select name from person where age > 40;
create table log (what);
create trigger added after insert on person begin insert into log values ('added ' || new.name); end;
insert into person (name, age) values ('Ann', 41), ('Bob', 23), ('Cy', 67);
begin; delete from person; rollback;
select * from old order by name;
select * from log;
with recursive n(x) as (select 1 union all select x + 1 from n where x < 1000) select sum(x), avg(x) from n;
create virtual table words using fts5(text);
insert into words values ('a microkernel'), ('a monolith');
select text from words where words match 'micro*';
select json_extract('{"a":[1,2,3]}', '$.a[1]');
pragma journal_mode = wal;
pragma integrity_check;
explain query plan select * from person where age = 3;
END
sqlite3 data.db "insert into person (name, age) values ('Ann', 1)"
echo "status $?"
sqlite3 -header -csv data.db 'select * from person'
sqlite3 data.db .dump | sqlite3 copy.db && sqlite3 copy.db 'select count(*) from person'

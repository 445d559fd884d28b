"""Expressions mean after the compiler what they meant before: each is compiled in a view, and its values compared.

sqlglot reads and writes every expression of a view. Whatever it gets wrong would be a wrong view, so all kinds are
tried. One expression a line.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import duckdb
import pytest

from tests.golden.compiled import assert_state_is_exact

TABLE = """
CREATE TABLE t (
  i INTEGER, j INTEGER, b BIGINT, d DOUBLE, c DECIMAL(10, 3), s VARCHAR, r VARCHAR, dt DATE, ts TIMESTAMP,
  tz TIMESTAMPTZ, tm TIME, iv INTERVAL, l INTEGER[], ls VARCHAR[], st STRUCT(a INTEGER, b VARCHAR), m MAP(VARCHAR, INT),
  bo BOOLEAN, js JSON, bl BLOB, bi BIT, u UUID, ut UTINYINT
);
INSERT INTO t VALUES
  (7, 2, 10000000000, 2.5, 1.125, 'Hello World', 'l', '2024-02-29', '2024-03-31 23:59:58.123456',
   '2024-03-31 23:59:58+02', '12:34:56.789', '1 month 2 days 03:00:00', [3, 1, NULL, 2], ['b', 'a'], {'a': 1, 'b': 'x'},
   MAP {'k': 1, 'z': NULL}, true, '{"a": [1, {"b": "c"}], "n": null}', '\\xAA\\x41', '10110',
   'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11', 200),
  (-7, 3, -1, -2.5, -1.125, 'ünï''cödé%_', '%', '1999-12-31', '1969-12-31 00:00:00', '2000-01-01 00:00:00Z', '00:00:00',
   '-5 days', [], [NULL], {'a': NULL, 'b': NULL}, MAP {}, false, '[1, 2]', '', '0', NULL, 0),
  (0, 1, 0, 0.0, 0, '', 'a', '2023-01-01', '2023-01-01 10:10:10', '2023-01-01 10:10:10Z', '23:59:59', '0 days', [5],
   ['x', 'y', 'z'], {'a': 2, 'b': 'q'}, MAP {'k': 5}, NULL, '"x"', 'abc', '1', NULL, 255);
INSERT INTO t (i) VALUES (NULL);
"""

NUMBERS = r"""
.5
i * .25
-.5e1 + c * .5
1. + 00.5
i / j
i // j
i % j
-i % j
i ** j
i ^ j
i & j
xor(i, j)
~i
@i
abs(i)
factorial(abs(j))
i + -j
i - -j
i - (j - 1)
i / 0
d / 0
1 / 3
1.0 / 3
7 / 2.0
b / i
c * c
c / 3
c::INTEGER
d::INTEGER
round(d)
round(c, 1)
round(i, -1)
round_even(d, 0)
trunc(d)
floor(d)
ceil(d)
ceiling(d)
sign(d)
sqrt(abs(d))
cbrt(d)
ln(abs(d) + 1)
log(abs(d) + 1)
log10(abs(d) + 1)
log2(abs(d) + 1)
log(2, abs(d) + 1)
exp(d)
pow(d, 2)
power(i, 2)
mod(i, j)
fmod(d, 2)
divide(i, j)
gcd(i, j)
lcm(i, j)
greatest(i, j, 3)
least(i, j)
nullif(i, 7)
coalesce(i, j, 1)
ifnull(i, 5)
CASE WHEN bo THEN 1 END
i IS NULL
i ISNULL
i NOTNULL
i IS NOT NULL
bo IS TRUE
bo IS NOT TRUE
bo IS FALSE
bo IS NOT FALSE
bo IS UNKNOWN
i IS DISTINCT FROM j
i IS NOT DISTINCT FROM NULL
i == 7
i != 7
i <> 7
NOT i = 7
NOT bo
bo AND i > 0
bo OR i > 0
i BETWEEN -10 AND 3
i NOT BETWEEN 0 AND 10
i IN (7, 0)
i NOT IN (7, 0)
i IN (7, NULL)
3 IN (i, j)
chr(i + 70)
hash(i, j)
to_hex(abs(i))
bin(abs(i))
to_binary(abs(i))
bi & bi
bit_count(i)
get_bit(bi, 0)
set_bit(bi, 0, 1)
1_000
1e3
1e-3::DECIMAL(5,3)
1.50
123456789012345678901234567890
-5 % 3
- - 5
+i
true::INT
CAST(i AS VARCHAR)
i::TINYINT
i::SMALLINT
i::HUGEINT
i::FLOAT
i::REAL
i::DOUBLE
i::DECIMAL
i::DECIMAL(18,4)
i::NUMERIC(5,1)
ut::UBIGINT
i::BIT
i::VARIANT
u::VARCHAR
bo::INT
bo::VARCHAR
isinf(d)
isnan(d)
range(3)
range(1, 3)
generate_series(1, 3)
typeof(i)
pg_typeof(i)
constant_or_null(1, i)
alias(i)
bar(abs(i), 0, 10)
format_bytes(abs(b))
formatReadableSize(abs(b))
pi()
degrees(d)
radians(d)
sin(d)
atan2(d, 1)
gamma(5)
nextafter(d, 1)
even(d)
signbit(d)
i::VARCHAR::INT
NOT (i > 0 AND j > 0) OR bo
(i > 0) IS NULL
- i ** 2
2 ** -1
(-2) ** 2
i - j - 1
i / j / 2
i * (j + 1)
(i * j) + 1
NOT i IS NULL
i::INT::DOUBLE / 3
i = 7 AND j = 2 OR i = 0 AND j = 1
equi_width_bins(0, 10, 2, true)
can_cast_implicitly(i, j)
cot(1)
(i, j) IN ((7, 2))
count_if(i > 0)
TRUE AND NULL
i | j
"""

TEXT = r"""
if(i > 0, 'a', 'b')
CASE i WHEN 7 THEN 'x' WHEN -7 THEN 'y' ELSE 'z' END
s LIKE 'H%'
s NOT LIKE '%o%'
s ILIKE 'h%'
s NOT ILIKE 'h%'
s LIKE '%\%%' ESCAPE '\'
s LIKE r || '%'
s SIMILAR TO '.*o.*'
s NOT SIMILAR TO 'x'
s ~ 'H.*'
s !~ 'H.*'
s ~~ 'H%'
s !~~ 'H%'
s ~~* 'h%'
s GLOB 'H*'
s ~~~ 'H*'
s ^@ 'He'
starts_with(s, 'He')
prefix(s, 'He')
suffix(s, 'ld')
ends_with(s, 'ld')
contains(s, 'o W')
regexp_matches(s, 'o')
regexp_full_match(s, '.*o.*')
regexp_replace(s, 'o', '0')
regexp_replace(s, 'o', '0', 'g')
regexp_extract(s, '(.)o', 1)
s || r
s || i
concat(s, r, i)
concat_ws('-', s, r)
upper(s)
lower(s)
ucase(s)
lcase(s)
length(s)
len(s)
strlen(s)
char_length(s)
bit_length(s)
substr(s, 2)
substring(s, 2, 3)
substring(s FROM 2 FOR 3)
substr(s, -3)
substr(s, -3, 2)
left(s, 2)
left(s, -2)
right(s, 2)
lpad(s, 15, '*')
rpad(s, 3, '*')
repeat(s, 2)
reverse(s)
translate(s, 'lo', 'xy')
trim(s)
trim(s, 'Hd')
trim(BOTH 'H' FROM s)
ltrim(s, 'H')
rtrim(s, 'd')
trim(LEADING 'H' FROM s)
trim(TRAILING 'd' FROM s)
position('o' IN s)
strpos(s, 'o')
instr(s, 'o')
split_part(s, 'o', 2)
split(s, 'o')
string_split(s, 'o')
str_split(s, 'o')
string_split_regex(s, 'o+')
ascii(s)
ord(s)
unicode(s)
printf('%d-%s', i, s)
md5(s)
sha256(s)
sha1(s)
hash(s)
hex(s)
unhex('41')
to_base64(bl)
base64(bl)
from_base64('QUI=')
encode(s)
decode(encode(s))
bl::VARCHAR
octet_length(bl)
bitstring('101', 5)
levenshtein(s, 'abc')
damerau_levenshtein(s, 'abc')
jaro_winkler_similarity(s, 'Hello')
hamming('ab', 'ac')
strip_accents(s)
nfc_normalize(s)
url_encode(s)
parse_path('a/b')
s COLLATE NOCASE = 'hello world'
E'a\nb'
'it''s'
$$x'y$$
'\x41'::BLOB
'1'::INT
TRY_CAST(s AS INT)
TRY(s::INT)
'a'::ENUM('a','b')
(i, s)
enum_range(NULL::ENUM('a','b'))
nullif(s, '')
(i + 1)::VARCHAR || 'x'
'a' < 'B'
CAST(s AS VARCHAR(3))
s::CHAR(2)
s::TEXT
s::STRING
string_agg(s, ',')
md5_number(s)
starts_with(lower(s), 'h')
like_escape(s, 'a', 'b')
not_like_escape(s, 'a', 'b')
regexp_escape(s)
parse_filename('a/b.c')
s IN ('a', 'Hello World')
(i, s) = (7, 'Hello World')
i NOT IN (1, 2) AND s IS NOT NULL
'%' || s || '%'
concat('a', NULL)
i || ''
greatest('a', s)
"""

TIME = r"""
dt + 1
dt - 1
dt - DATE '2024-01-01'
dt + INTERVAL 1 MONTH
dt + INTERVAL '1' MONTH
dt - INTERVAL '1 month 2 days'
dt + INTERVAL (i) DAY
dt + i
dt + to_days(i)
ts + iv
ts - ts
ts - INTERVAL 1 HOUR
tm + INTERVAL 1 HOUR
iv * 2
iv + iv
-iv
ts::DATE
dt::TIMESTAMP
ts::TIME
tz::DATE
tz AT TIME ZONE 'UTC'
ts AT TIME ZONE 'Europe/Berlin'
timezone('UTC', ts)
date_trunc('month', ts)
date_trunc('week', dt)
date_trunc('hour', tz)
datetrunc('day', ts)
date_part('year', dt)
date_part('dow', dt)
datepart('day', dt)
extract(year FROM dt)
extract(epoch FROM ts)
extract(dow FROM dt)
extract(isodow FROM dt)
extract(week FROM dt)
extract(quarter FROM dt)
extract(doy FROM dt)
extract(hour FROM tm)
extract(day FROM iv)
year(dt)
month(dt)
day(dt)
dayofmonth(dt)
dayofweek(dt)
isodow(dt)
weekday(dt)
dayofyear(dt)
week(dt)
weekofyear(dt)
yearweek(dt)
quarter(dt)
hour(ts)
minute(ts)
second(ts)
millisecond(ts)
microsecond(ts)
epoch(ts)
epoch_ms(ts)
epoch_us(ts)
epoch_ns(ts)
epoch_ms(1000)
to_timestamp(i)
make_date(2024, 2, 29)
make_time(1, 2, 3.5)
make_timestamp(2024, 1, 2, 3, 4, 5.5)
make_timestamp(1000000)
last_day(dt)
dayname(dt)
monthname(dt)
era(dt)
century(dt)
decade(dt)
julian(dt)
age(ts, TIMESTAMP '2024-01-01')
date_diff('month', dt, DATE '2025-01-01')
datediff('day', DATE '2024-01-01', dt)
date_sub('month', dt, DATE '2025-01-01')
datesub('day', DATE '2024-01-01', dt)
date_add(dt, INTERVAL 1 DAY)
strftime('%Y', ts)
try_strptime(s, '%Y')
time_bucket(INTERVAL 1 WEEK, dt)
time_bucket(INTERVAL 1 MONTH, ts)
DATE '2024-01-01'
TIMESTAMP '2024-01-01 00:00:00'
TIMESTAMPTZ '2024-01-01 00:00:00+00'
TIME '01:02:03'
INTERVAL 1 YEAR
INTERVAL '3' DAY
to_months(i)
to_seconds(i)
isfinite(dt)
dt = '2024-02-29'
ts > '2024-01-01'
dt BETWEEN '2024-01-01' AND '2024-12-31'
date '2024-01-01' + interval '1 day'
ts::TIMESTAMP_S
ts::TIMESTAMP_MS
ts::TIMESTAMP_NS
tz::VARCHAR
date_part('epoch', iv)
to_days(3) + iv
ts::DATE = dt
tz > ts
dt::VARCHAR
dt - ts
ts - dt
iv > INTERVAL 1 DAY
iv = INTERVAL '31 days'
"""

NESTED = r"""
i IN l
i = ANY(l)
i > ALL(l)
regexp_replace(s, '(l+)', '<\1>')
regexp_extract(s, 'l+')
regexp_extract(s, '(.)(o)', ['p','q'])
regexp_extract_all(s, 'l')
regexp_split_to_array(s, 'o')
array_length(l)
len(l)
s[2]
s[-1]
s[2:3]
s[:-2]
replace(s, 'l', 'L')
string_to_array(s, 'o')
format('{}-{}', i, s)
l::VARCHAR
l::BIGINT[]
ls::VARCHAR[]
st::STRUCT(a BIGINT, b VARCHAR)
date_part(['year', 'month'], dt)
strftime(ts, '%Y-%m-%d %H:%M')
strptime('2024-01-02', '%Y-%m-%d')
l[1]
l[-1]
l[1:2]
l[2:]
l[:2]
l[:-1:2]
l[-2:]
list_contains(l, 1)
list_has(l, 1)
array_contains(l, 1)
list_position(l, 1)
list_indexof(l, 2)
list_sort(l)
list_sort(l, 'DESC')
list_reverse_sort(l)
list_distinct(l)
list_unique(l)
list_sum(l)
list_avg(l)
list_min(l)
list_aggregate(l, 'max')
list_concat(l, [1])
l || [9]
list_append(l, 4)
list_prepend(4, l)
array_append(l, 4)
array_push_front(l, 4)
list_slice(l, 1, 2)
list_extract(l, 1)
list_element(l, 1)
array_extract(l, 1)
list_zip(l, ls)
list_transform(l, lambda x: x + i)
list_filter(l, lambda x: x > 1)
list_reduce([1, 2, 3], lambda x, y: x + y)
[x * 2 FOR x IN l IF x > 1]
flatten([l, l])
list_value(i, j)
[i, j]
array_value(i, j)
array[i, j]
list_grade_up(l)
list_any_value(l)
array_to_string(ls, ',')
list_string_agg(ls)
list_has_any(l, [1])
l @> [1]
l && [1]
[1] <@ l
list_where(l, [true, false, true, true])
list_select(l, [1])
list_resize(l, 2)
list_intersect(l, [1, 2])
len(ls)
st.a
st['b']
struct_extract(st, 'a')
st.a + 1
(st).b
{'x': i, 'y': s}
struct_pack(x := i)
row(i, s)
struct_insert(st, c := 1)
struct_concat(st, {'z': 1})
m['k']
m['k'] + 1
element_at(m, 'k')
map_extract(m, 'k')
map_keys(m)
map_values(m)
map_entries(m)
cardinality(m)
map_contains(m, 'k')
MAP{'a': i}
map(['a'], [i])
map_from_entries([('a', i)])
map_concat(m, MAP{'q': 1})
union_value(a := i)
array_distance([1.0,2.0]::FLOAT[2], [1.0,3.0]::FLOAT[2])
list_distance([1.0,2.0], [1.0,3.0])
list_cosine_similarity([1.0,2.0], [1.0,3.0])
list(i)
list_apply(l, lambda x: x)
filter(l, lambda x: x > 1)
array_filter(l, lambda x: x > 1)
list_transform(l, lambda a: list_transform(ls, lambda b: a))
grade_up(l)
list_contains(['a','b'], s)
strftime(dt, '%d.%m.%y')
"""

JSON = r"""
js.a
js.a[0]
js::VARCHAR
js->'a'
js->>'a'
js->'$.a[0]'
js->>'$.a[1].b'
js->0
json_extract(js, '$.a')
json_extract_string(js, '$.a[0]')
js['a']
json_type(js)
json_array_length(js)
json_keys(js)
json_valid(s)
json_object('a', i)
json_array(i, s)
to_json(st)
json_contains(js, '1')
json_structure(js)
js::JSON
json_exists(js, '$.a')
json_value(js, '$.n')
from_json(js, '"JSON"')
"""

#: What sqlglot alone would read or write as something else, and calls with a dot before them.
AS_WRITTEN = r"""
x'41'
X'00ff' || bl
b'101'
j! + 1
-(i % 3 + 5)!
(i > 2)!= bo
s !~ 'a'
i.abs()
main.abs(i)
s.upper().lower()
trim(s).upper()
st.b.upper()
l.list_transform(lambda x: x + 1).list_sum()
apply(l, lambda x, i: x + i)
reduce(l, lambda x, y: coalesce(x, 0) - coalesce(y, 0), 10)
list_concat()
array_cat(l, [1])
jaro_winkler_similarity(s, 'hello world', 0.1)
2 * mod(i, 4)
floor(log2(8 + abs(i)))
floor(log10(1000 + abs(i)))
date_add(ts, iv)
date_add(dt, INTERVAL 1 MONTH)
date_diff(CASE WHEN bo THEN 'day' ELSE 'month' END, dt, DATE '2020-01-01')
js->'a.b'
js->>'$.a'
js->' '
js->'*'
'{"a.b": 1, "a": {"b": 2}}'::JSON->'a.b'
json_extract('{"a.b": 1, "a": {"b": 2}}', 'a.b')
json_extract_string('{" ": "x"}', ' ')
JSON '[1,  2]'
i IN (SELECT 1)
unnest([1, 2])
unnest(l) + 1
[x + y FOR x, y IN l IF x > i]
struct_pack(i, j)
t
#1 + 1
"""


def lines(*texts: str) -> list[str]:
    return [line for text in texts for line in text.splitlines() if line]


@pytest.fixture(scope="module")
def connection() -> Iterator[Any]:
    with duckdb.connect() as opened:
        opened.execute(TABLE)
        yield opened


@pytest.mark.parametrize("expression", lines(NUMBERS, TEXT, TIME, NESTED, JSON, AS_WRITTEN))
def test_expressions(connection: Any, expression: str) -> None:
    made = assert_state_is_exact(connection, f"SELECT {expression} AS v FROM t")
    assert made.plan.reason is None


@pytest.mark.parametrize("expression", ["i + j", "upper(s)", "dt + 1", "l[1]", "st.a", "CASE WHEN bo THEN i END"])
def test_expressions_as_keys_and_arguments(connection: Any, expression: str) -> None:
    made = assert_state_is_exact(
        connection, f"SELECT {expression} AS v, count({expression}) AS n, min({expression}) AS m FROM t GROUP BY 1"
    )
    assert made.plan.refresh_type == "AGGREGATE_GROUP"

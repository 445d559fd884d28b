"""The operator tree: frozen dataclasses that know their output columns.

An operator's output columns have names that are unique within it without regard to case. Expressions of an operator are
sqlglot expressions whose columns are bare names of its child's output (see `column`), so that no expression depends
on how a relation was called in the user's query. A relation is a Z-set throughout: rows with signed weights.
"""

from __future__ import annotations

from dbt_openivm.compiler.algebra.base import (
    ManyInputs as ManyInputs,
)
from dbt_openivm.compiler.algebra.base import (
    Names as Names,
)
from dbt_openivm.compiler.algebra.base import (
    Narrowed as Narrowed,
)
from dbt_openivm.compiler.algebra.base import (
    OneInput as OneInput,
)
from dbt_openivm.compiler.algebra.base import (
    Operator as Operator,
)
from dbt_openivm.compiler.algebra.base import (
    Pairing as Pairing,
)
from dbt_openivm.compiler.algebra.base import (
    TwoInputs as TwoInputs,
)
from dbt_openivm.compiler.algebra.base import (
    bottom_up as bottom_up,
)
from dbt_openivm.compiler.algebra.base import (
    column as column,
)
from dbt_openivm.compiler.algebra.base import (
    names_of as names_of,
)
from dbt_openivm.compiler.algebra.base import (
    read_of as read_of,
)
from dbt_openivm.compiler.algebra.base import (
    shared_operators as shared_operators,
)
from dbt_openivm.compiler.algebra.base import (
    unique_name as unique_name,
)
from dbt_openivm.compiler.algebra.core import (
    Constant as Constant,
)
from dbt_openivm.compiler.algebra.core import (
    Filter as Filter,
)
from dbt_openivm.compiler.algebra.core import (
    Join as Join,
)
from dbt_openivm.compiler.algebra.core import (
    OuterJoin as OuterJoin,
)
from dbt_openivm.compiler.algebra.core import (
    Project as Project,
)
from dbt_openivm.compiler.algebra.core import (
    Scan as Scan,
)
from dbt_openivm.compiler.algebra.core import (
    SemiJoin as SemiJoin,
)
from dbt_openivm.compiler.algebra.core import (
    Temporal as Temporal,
)
from dbt_openivm.compiler.algebra.core import (
    TemporalColumns as TemporalColumns,
)
from dbt_openivm.compiler.algebra.core import (
    TemporalFilter as TemporalFilter,
)
from dbt_openivm.compiler.algebra.core import (
    UnionAll as UnionAll,
)
from dbt_openivm.compiler.algebra.core import (
    Unnest as Unnest,
)
from dbt_openivm.compiler.algebra.core import (
    exactly as exactly,
)
from dbt_openivm.compiler.algebra.nodes import (
    NODES as NODES,
)
from dbt_openivm.compiler.algebra.nodes import (
    Aggregate as Aggregate,
)
from dbt_openivm.compiler.algebra.nodes import (
    Asof as Asof,
)
from dbt_openivm.compiler.algebra.nodes import (
    Call as Call,
)
from dbt_openivm.compiler.algebra.nodes import (
    Keyed as Keyed,
)
from dbt_openivm.compiler.algebra.nodes import (
    Recursive as Recursive,
)
from dbt_openivm.compiler.algebra.nodes import (
    TopK as TopK,
)
from dbt_openivm.compiler.algebra.nodes import (
    Window as Window,
)
from dbt_openivm.compiler.algebra.nodes import (
    top_node as top_node,
)

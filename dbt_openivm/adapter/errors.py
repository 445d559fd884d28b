"""Our errors as dbt's: dbt adds the model and its file, and prints no stack."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import duckdb
from dbt_common.exceptions import CompilationError, DbtBaseException, DbtDatabaseError, DbtRuntimeError

from dbt_openivm.errors import InternalError, OpenIvmError


@contextmanager
def as_dbt_errors() -> Iterator[None]:
    """Turn whatever the engine raises into the error that dbt shows best."""
    try:
        yield
    except DbtBaseException:
        raise
    except InternalError as error:
        raise DbtRuntimeError(str(error)) from error
    except OpenIvmError as error:
        raise CompilationError(str(error)) from error
    except duckdb.Error as error:
        raise DbtDatabaseError(str(error)) from error
    except Exception as error:
        raise DbtRuntimeError(str(InternalError(f"{type(error).__name__}: {error}"))) from error

"""The tables' schemas as Arrow and Parquet have them."""

from collections.abc import Container

import pyarrow as pa
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    BooleanType,
    DataType,
    DateType,
    IntegerType,
    LongType,
    MapType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

_PLAIN: dict[type[DataType], pa.DataType] = {
    BinaryType: pa.binary(),
    BooleanType: pa.bool_(),
    DateType: pa.date32(),
    IntegerType: pa.int32(),
    LongType: pa.int64(),
    StringType: pa.string(),
    TimestampType: pa.timestamp("us", tz="UTC"),
}


def arrow_schema(schema: StructType, *, without: Container[str] = ()) -> pa.Schema:
    return pa.schema([_field(field) for field in schema.fields if field.name not in without])


def _field(field: StructField) -> pa.Field:
    return pa.field(field.name, _type(field.dataType), nullable=field.nullable)


def _type(type_: DataType) -> pa.DataType:
    match type_:
        case ArrayType():
            return pa.list_(pa.field("element", _type(type_.elementType), nullable=type_.containsNull))
        case MapType():
            value = pa.field("value", _type(type_.valueType), nullable=type_.valueContainsNull)
            return pa.map_(_type(type_.keyType), value)
        case StructType():
            return pa.struct([_field(each) for each in type_.fields])
        case _:
            return _PLAIN[type(type_)]

"""JMESPath: what its library raises where an expression does not suit a value."""

#: Its own errors are ValueErrors. Others it lets through: the one of Python for ``1 < 'x'``, or for the ceiling of NaN.
FAILURES = (ArithmeticError, AttributeError, TypeError, ValueError)

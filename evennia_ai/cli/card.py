"""`evennia-ai card …`: show and convert character cards and lorebooks, without a game."""

import argparse
from pathlib import Path

from evennia_ai.cards.card import exported, read_card, report
from evennia_ai.cards.container import FORMATS, packed, read
from evennia_ai.errors import Refusal


def add_actions(card: argparse.ArgumentParser) -> None:
    """Add what the command can do."""
    actions = card.add_subparsers(title="actions", required=True, metavar="ACTION")
    show = actions.add_parser("show", help="say what a card or lorebook holds, and what is used")
    convert = actions.add_parser("convert", help=f"write a card as {', '.join(FORMATS)}")
    for action, run in ((show, _show), (convert, _convert)):
        action.add_argument("file", type=Path, help="PNG, CHARX, JSON or YAML")
        action.add_argument("--name", default="", help="a name instead of the card's")
        action.set_defaults(run=run)
    convert.add_argument("out", type=Path, help="the new file; its ending says the format")


def _data(file: Path) -> bytes:
    if not file.is_file():
        raise Refusal(f"`{file}` is no file")
    return file.read_bytes()


def _show(args: argparse.Namespace) -> None:
    print("\n".join(report(read(_data(args.file)), args.name)))


def _convert(args: argparse.Namespace) -> None:
    if args.out.exists():
        raise Refusal(f"`{args.out}` exists already")
    data = _data(args.file)
    card = read_card(read(data).value, args.name)
    args.out.write_bytes(packed(exported(card), args.out.suffix[1:].lower(), data))
    print(f"{args.out} holds the card of {card.name}.")

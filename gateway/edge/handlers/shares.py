"""Lists of shares, schemas and tables."""

from __future__ import annotations

from aiohttp import web

from gateway.edge.answer import json_answer, share_json
from gateway.edge.exchange import Exchange
from gateway.edge.json import encode_json
from gateway.edge.parameters import page_of
from gateway.v1 import catalog_pb2


async def list_shares(exchange: Exchange) -> web.StreamResponse:
    page = page_of(exchange.request.query)
    message = catalog_pb2.ListSharesRequest(
        caller=exchange.caller, max_results=page.max_results, page_token=page.page_token
    )
    found = await exchange.ask_catalog(exchange.edge.services.catalog.ListShares, message)
    return json_answer(exchange.edge.lists.render(found))


async def get_share(exchange: Exchange) -> web.StreamResponse:
    message = catalog_pb2.GetShareRequest(caller=exchange.caller, share=exchange.name("share"))
    found = await exchange.ask_catalog(exchange.edge.services.catalog.GetShare, message)
    return json_answer(encode_json({"share": share_json(found.share)}))


async def list_schemas(exchange: Exchange) -> web.StreamResponse:
    page = page_of(exchange.request.query)
    message = catalog_pb2.ListSchemasRequest(
        caller=exchange.caller,
        share=exchange.name("share"),
        max_results=page.max_results,
        page_token=page.page_token,
    )
    found = await exchange.ask_catalog(exchange.edge.services.catalog.ListSchemas, message)
    return json_answer(exchange.edge.lists.render(found))


async def list_tables(exchange: Exchange) -> web.StreamResponse:
    page = page_of(exchange.request.query)
    message = catalog_pb2.ListTablesRequest(
        caller=exchange.caller,
        share=exchange.name("share"),
        schema=exchange.name("schema"),
        max_results=page.max_results,
        page_token=page.page_token,
    )
    found = await exchange.ask_catalog(exchange.edge.services.catalog.ListTables, message)
    return json_answer(exchange.edge.lists.render(found))


async def list_all_tables(exchange: Exchange) -> web.StreamResponse:
    page = page_of(exchange.request.query)
    message = catalog_pb2.ListAllTablesRequest(
        caller=exchange.caller,
        share=exchange.name("share"),
        max_results=page.max_results,
        page_token=page.page_token,
    )
    found = await exchange.ask_catalog(exchange.edge.services.catalog.ListAllTables, message)
    return json_answer(exchange.edge.lists.render(found))

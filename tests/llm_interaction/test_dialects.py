"""What models write, and what it means: every form of the tables, and texts made of their marks."""

# ruff: noqa: E501 - the texts stand as they come

import json
import re
import unittest

from hypothesis import given
from hypothesis import strategies as st

from evennia_ai.llm_interaction.dialects import MOST_CALLS, read, repaired
from evennia_ai.llm_interaction.reply import MACHINE_TEXT, fault
from tests.growth import assert_not_square
from tests.strategies import FEW

TOOLS = {"say", "look", "noop", "search_memory", "give"}
S = 'Two ales, "the dark ones", cost {4} coins.'
J = json.dumps({"text": S})
ESCAPED = S.replace('"', '\\"')
THOUGHT = "Bob greets me, so I answer."

# What stands before the words, and behind them: the words alone are left.
SPOKEN = {
    "Harmony": f"<|channel|>analysis<|message|>{THOUGHT}<|end|><|start|>assistant<|channel|>final"
    f"<|message|>{S}<|return|>",
    "Harmony, preamble": f"<|channel|>commentary<|message|>{THOUGHT}<|end|><|start|>assistant"
    f"<|channel|>final<|message|>{S}",
    "Harmony, final alone": f"<|start|>assistant<|channel|>final<|message|>{S}<|end|>",
    "Harmony, bare": f"analysis{THOUGHT}assistantfinal{S}",
    "Harmony, bare, twice": f"analysis{THOUGHT}assistantanalysisMore.assistantfinal{S}",
    "think": f"<think>{THOUGHT}</think>\n\n{S}",
    "think, attributes": f'<think lang="en">{THOUGHT}</think>{S}',
    "thinking": f"<thinking>\n{THOUGHT}\n</thinking>{S}",
    "no opening": f"{THOUGHT}</think>{S}",
    "reasoning": f"<reasoning>{THOUGHT}</reasoning>{S}",
    "thought, nested": f"<thought>a<thought>b</thought>{THOUGHT}</thought>{S}",
    "Magistral": f"[THINK]{THOUGHT}[/THINK]{S}",
    "Kimi": f"\u25c1think\u25b7{THOUGHT}\u25c1/think\u25b7{S}",
    "Seed": f"<seed:think>{THOUGHT}</seed:think>{S}",
    "Command": f"<|START_THINKING|>{THOUGHT}<|END_THINKING|><|START_RESPONSE|>{S}<|END_RESPONSE|>",
    "Sky": f"<|begin_of_thought|>{THOUGHT}<|end_of_thought|>{S}",
    "start and end": f"<|thinking_start|>{THOUGHT}<|thinking_end|>{S}",
    "think and answer": f"<think>{THOUGHT}</think><answer>{S}</answer>",
    "answer alone": f"<answer>{S}</answer>",
    "ChatML": f"{S}<|im_end|>\n<|im_start|>user\nAnd the stew?<|im_end|>",
    "ChatML header": f"<|im_start|>assistant\n{S}<|im_end|>",
    "Llama 3": f"<|start_header_id|>assistant<|end_header_id|>\n\n{S}<|eot_id|>",
    "Llama 3, next turn": f"{S}<|eot_id|><|start_header_id|>user<|end_header_id|>\n\nAnd?",
    "Llama 2": f"[/INST] {S} </s><s>[INST] And? [/INST]",
    "Gemma": f"{S}<end_of_turn>\n<start_of_turn>user\nAnd?",
    "Phi": f"<|assistant|>{S}<|end|><|user|>And?",
    "GPT": f"{S}<|endoftext|>Human: And?",
    "DeepSeek": f"{S}<\uff5cend\u2581of\u2581sentence\uff5c><\uff5cUser\uff5c>And?",
    "Granite": f"<|start_of_role|>assistant<|end_of_role|>{S}<|end_of_text|>",
    "Aya": f"<|START_OF_TURN_TOKEN|><|CHATBOT_TOKEN|>{S}<|END_OF_TURN_TOKEN|>",
    "GLM box": f"<|begin_of_box|>{S}<|end_of_box|>",
    "Harmony, words behind": f"<|start|>assistant<|channel|>analysis<|message|>{THOUGHT}<|end|>{S}",
    "Harmony, names on lines": f"analysis\n{THOUGHT}\n\nfinal\n{S}",
    "Gemma 4": f"<|turn>model\n<|channel>thought\n{THOUGHT}<channel|>{S}<turn|>",
    "Seed, reflection": f"<seed:think>{THOUGHT}</seed:think><seed:cot_budget_reflect>9 left"
    f"</seed:cot_budget_reflect>{S}",
    "EXAONE": f"<thought>{THOUGHT}</thought>\n\n[|assistant|]{S}[|endofturn|]\n[|user|]And?",
    "Apertus": f"<|inner_prefix|>{THOUGHT}<|inner_suffix|>{S}<|assistant_end|>",
    "Llama 4": f"<|header_start|>assistant<|header_end|>\n\n{S}<|eot|>",
    "MiniMax": f"]~b]ai\n<think>{THOUGHT}</think>{S}[e~[",
    "role alone": f"assistant\n\n{S}",
    "details": f'<details type="reasoning"><summary>Hm</summary>{THOUGHT}</details>{S}',
    "in Chinese": f"<\u601d\u8003>{THOUGHT}</\u601d\u8003>{S}",
    "Alpaca": f"{S}\n### Instruction:\nAnd?",
    "Harmony, header garbled": f"<|channel|>analysis??<|message|>{THOUGHT}<|end|><|start|>assistant"
    f"<|channel|>final <|constrain|>response<|message|>{S}",
    "Harmony, header twice": "<|channel|>commentary to=assistant<|channel|>commentary?<|message|>"
    f"{THOUGHT}<|end|><|start|>assistant<|channel|>final<|message|>{S}",
    "Harmony, free header": f"<|channel|>I think<|message|>{THOUGHT}<|end|>assistant<|channel|>final"
    f"<|message|>{S}",
    "Harmony, no message mark": f"<|channel|>analysis {THOUGHT}<|end|><|start|>assistant<|channel|>"
    f"final\n{S}",
    "Harmony, first header cut off": f"{THOUGHT}<|end|><|start|>assistant<|channel|>final<|message|>{S}",
    "Harmony, bare, first name cut off": f"{THOUGHT}assistantfinal{S}",
    "Harmony, bare, colons": f"analysis: {THOUGHT}\nassistantfinal: {S}",
    "Gemma 4, final": f"<|channel>thought\n{THOUGHT}<channel|><|channel>final\n{S}<channel|>",
    "Command, sources": f"<|START_RESPONSE|><co: 0>{S}</co: 0><|END_RESPONSE|>",
    "Hermes, scratch pad": f"<scratch_pad>{THOUGHT}</scratch_pad>{S}",
    "camel case": f"<antThinking>{THOUGHT}</antThinking>{S}",
    "chain of thought": f"<chain_of_thought>{THOUGHT}</chain_of_thought><final_answer>{S}</final_answer>",
    "tag with blanks": f"< think >{THOUGHT}</ think >{S}",
    "escaped": f"&lt;think&gt;{THOUGHT}&lt;/think&gt;{S}",
    "Solar": f"<|think|>{THOUGHT}<|end|><|begin|>assistant<|content|>{S}<|end|>",
    "Kimi, roles": f"<|im_assistant|>assistant<|im_middle|>{S}<|im_end|>",
    "Phi, separator": f"assistant<|im_sep|>{S}<|im_end|>",
    "Jamba": f"<|bom|><|assistant|> {S}<|eom|>",
    "Llama 3, marks dropped": f"{S}assistant\n\nWhat else?",
    "GLM, made-up result": f"{S}<|observation|>The room is dark.",
    "Qwen, made-up result": f"{S}\n<tool_response>\nDone.\n</tool_response>",
    "Qwen, switch": f"{S} /no_think",
    "Functionary": f">>>all\n{S}",
    "padding": f"{S}[PAD][PAD]<SPECIAL_12>",
    "Mistral, parts": json.dumps(
        [{"type": "thinking", "thinking": THOUGHT}, {"type": "text", "text": S}]
    ),
    "unknown marks": f"<|some_new_mark|>{S}<|vision_pad|>",
    "MiniMax 3": f"]<]minimax[>[<mm:think>{THOUGHT}]<]minimax[>[</mm:think>{S}",
    "planning": f"<planning>{THOUGHT}</planning>{S}",
    "thought not closed": f"<think>{THOUGHT}\n<answer>{S}</answer>",
    "headings of Markdown": f"### Thinking\n{THOUGHT}\n\n### Response\n{S}",
    "tag around": f'<character name="Aria"><speech>{S}</speech></character>',
    "source": f"{S}\u30104:0\u2020source\u3011",
    "entities": S.replace('"', "&quot;") + "&nbsp;",
    "Kimi 3": f"<|open|>think<|sep|>{THOUGHT}<|close|>think<|sep|><|open|>message<|sep|>{S}<|close|>message<|sep|>",
    "wide signs": f"\uff1cthink\uff1e{THOUGHT}\uff1c/think\uff1e{S}&lt;|im_end|&gt;",
    "blanks in marks": f"{S}< |im_end| >",
    "Mistral, frames": f"[AVAILABLE_TOOLS][][/AVAILABLE_TOOLS][INST][/INST]{S}",
    "inner voice": f"<inner_voice>{THOUGHT}</inner_voice>{S}",
    "thought in a fence": f"```thinking\n{THOUGHT}\n```\n{S}",
    "thought as in a terminal": f"Thinking...\n{THOUGHT}\n...done thinking.\n\n{S}",
    "Vicuna, next turn": f"{S} USER: And?",
    "body of an API": json.dumps({"choices": [{"message": {"content": S}}]}),
    "object, torn": json.dumps({"thought": THOUGHT, "response": S})[:-1],
}
# The same words as a call of `say`.
CALLED = {
    "Harmony": f"<|channel|>commentary to=functions.say <|constrain|>json<|message|>{J}<|call|>",
    "Harmony, bare": f"analysis{THOUGHT}assistantcommentary to=functions.say json{J}",
    "Hermes": f'<tool_call>\n{{"name": "say", "arguments": {J}}}\n</tool_call>',
    "Hermes, unclosed": f'<tool_call>{{"name": "say", "arguments": {J}}}',
    "Hermes, thought": f'<think>{THOUGHT}</think><tool_call>{{"name": "say", "arguments": {J}}}'
    "</tool_call>",
    "Hermes, list": f'<tool_calls>[{{"name": "say", "arguments": {J}}}]</tool_calls>',
    "Hermes, old": f'<functioncall> {{"name": "say", "arguments": {J}}}',
    "Mistral": f"[TOOL_CALLS]say[ARGS]{J}",
    "Mistral, object behind name": f"[TOOL_CALLS]say{J}",
    "Mistral, list": f'[TOOL_CALLS] [{{"name": "say", "arguments": {J}}}]',
    "LM Studio": f'[TOOL_REQUEST]{{"name": "say", "arguments": {J}}}[END_TOOL_REQUEST]',
    "Qwen coder": f"<tool_call>\n<function=say>\n<parameter=text>\n{S}\n</parameter>\n</function>"
    "\n</tool_call>",
    "Seed": f"<seed:tool_call><function=say><parameter=text>{S}</parameter></function>"
    "</seed:tool_call>",
    "Anthropic": f'<function_calls>\n<invoke name="say">\n<parameter name="text">{S}</parameter>\n'
    "</invoke>\n</function_calls>",
    "MiniMax": f'<minimax:tool_call><invoke name="say"><parameter name="text">{S}</parameter>'
    "</invoke></minimax:tool_call>",
    "GLM": f"<tool_call>say\n<arg_key>text</arg_key>\n<arg_value>{S}</arg_value>\n</tool_call>",
    "Llama, tag": f"<function=say>{J}</function>",
    "Llama, python tag": f'<|python_tag|>{{"name": "say", "parameters": {J}}}<|eom_id|>',
    "Llama, pythonic": f'[say(text="{ESCAPED}")]',
    "LFM": f'<|tool_call_start|>[say(text="{ESCAPED}")]<|tool_call_end|>',
    "OLMo": f'<function_calls>say(text="{ESCAPED}")</function_calls>',
    "DeepSeek": "<\uff5ctool\u2581calls\u2581begin\uff5c><\uff5ctool\u2581call\u2581begin\uff5c>"
    f"function<\uff5ctool\u2581sep\uff5c>say\n```json\n{J}\n```"
    "<\uff5ctool\u2581call\u2581end\uff5c><\uff5ctool\u2581calls\u2581end\uff5c>",
    "DeepSeek, new": "<\uff5ctool\u2581calls\u2581begin\uff5c>"
    "<\uff5ctool\u2581call\u2581begin\uff5c>"
    f"say<\uff5ctool\u2581sep\uff5c>{J}<\uff5ctool\u2581call\u2581end\uff5c>"
    "<\uff5ctool\u2581calls\u2581end\uff5c>",
    "Kimi": "<|tool_calls_section_begin|><|tool_call_begin|>functions.say:0"
    f"<|tool_call_argument_begin|>{J}<|tool_call_end|><|tool_calls_section_end|>",
    "Command": f'<|START_ACTION|>[{{"tool_name": "say", "parameters": {J}}}]<|END_ACTION|>',
    "Granite": f'<|tool_call|>[{{"name": "say", "arguments": {J}}}]',
    "InternLM": f'<|action_start|><|plugin|>{{"name": "say", "parameters": {J}}}<|action_end|>',
    "Nemotron": f'<TOOLCALL>[{{"name": "say", "arguments": {J}}}]</TOOLCALL>',
    "Phi": f'functools[{{"name": "say", "arguments": {J}}}]',
    "ReAct": f"Thought: {THOUGHT}\nAction: say\nAction Input: {J}",
    "agents": f'{{"action": "say", "action_input": {J}}}',
    "flat": f'{{"action": "say", "text": {json.dumps(S)}}}',
    "API": f'{{"tool_calls": [{{"function": {{"name": "say", "arguments": {J}}}}}]}}',
    "fence": f'```json\n{{"name": "say", "arguments": {J}}}\n```',
    "fence, marked": f'```tool_call\n{{"name": "say", "arguments": {J}}}\n```',
    "bare": f'{{"name": "say", "arguments": {J}}}',
    "bare list": f'[{{"name": "say", "parameters": {J}}}]',
    "torn": f'<tool_call>{{"name": "say", "arguments": {{"text": {json.dumps(S)}',
    "miscased": f'<tool_call>{{"name": "functions.Say", "arguments": {J}}}</tool_call>',
    "fence inside": f'<tool_call>\n```json\n{{"name": "say", "arguments": {J}}}\n```\n</tool_call>',
    "fenced arguments": f"<function=say>```json\n{J}\n```</function>",
    "Python's arguments": f"<|tool_call_begin|>say(text={json.dumps(S)})<|tool_call_end|>",
    "arguments in brackets": f"<function=say>(text={json.dumps(S)})</function>",
    "Harmony, in the role": "<|start|>assistant to=functions.say<|channel|>commentary<|message|>"
    f"{J}<|call|>",
    "Hunyuan": f"<tool_calls>\n<tool_call>say\n```json\n{J}\n```</tool_call>\n</tool_calls>",
    "Hermes, twice": f'<tool_call>\n<tool_call>{{"name": "say", "arguments": {J}}}</tool_call>\n'
    "</tool_call>",
    "Gemma 4": f'<|tool_call>call:say{{text:<|"|>{S}<|"|>}}<tool_call|>',
    "FunctionGemma": f"<start_function_call>call:say{{text:<escape>{S}<escape>}}"
    "<end_function_call>",
    "Gemini": f"```tool_code\nprint(default_api.say(text={json.dumps(S)}))\n```",
    "Step": "<\uff5ctool_calls_begin\uff5c><\uff5ctool_call_begin\uff5c>function"
    f'<\uff5ctool_sep\uff5c><steptml:invoke name="say"><steptml:parameter name="text">{S}'
    "</steptml:parameter></steptml:invoke><\uff5ctool_call_end\uff5c><\uff5ctool_calls_end\uff5c>",
    "DeepSeek, DSML": '<\uff5cDSML\uff5cfunction_calls><\uff5cDSML\uff5cinvoke name="say">'
    f'<\uff5cDSML\uff5cparameter name="text" string="true">{S}</\uff5cDSML\uff5cparameter>'
    "</\uff5cDSML\uff5cinvoke></\uff5cDSML\uff5cfunction_calls>",
    "XML": f"<tool_use>\n<name>say</name>\n<arguments>{J}</arguments>\n</tool_use>",
    "tool's own tag": f"<say>\n<text>{S}</text>\n</say>",
    "Apertus": f'<|tools_prefix|>[{{"say": {J}}}]<|tools_suffix|>',
    "Llama 4": f'<|python_start|>[say(text="{ESCAPED}")]<|python_end|><|eom|>',
    "name as key": f'{{"say": {J}}}',
    "action as object": f'Thought: {THOUGHT}\nAction: {{"name": "say", "arguments": {J}}}',
    "quoted twice": f'<tool_call>{{"name": "say", "arguments": {json.dumps(J)}}}</tool_call>',
    "Harmony, bare, at once": f"commentary to=functions.say json\n{J}",
    "Harmony, name and kind glued": f"analysis{THOUGHT}assistantcommentary to=functions.sayjson{J}",
    "Harmony, recipient alone": f"to=functions.say <|constrain|>json<|message|>{J}<|call|>",
    "Harmony, no message mark": f"<|channel|>commentary to=functions.say {J}",
    "in a thought": f'<think>{THOUGHT}<tool_call>{{"name": "say", "arguments": {J}}}</tool_call>',
    "Kimi, in a thought": f"<think>{THOUGHT}<|tool_call_begin|>functions.say:0"
    f"<|tool_call_argument_begin|>{J}<|tool_call_end|>",
    "Mistral, id": f"[TOOL_CALLS]say[CALL_ID]abc123XYZ[ARGS]{J}",
    "Mistral, lower case": f'[tool_calls][{{"name": "say", "arguments": {J}}}]',
    "DeepSeek, plain bars": "<|tool\u2581calls\u2581begin|><|tool\u2581call\u2581begin|>function"
    f"<|tool\u2581sep|>say\n```json\n{J}\n```<|tool\u2581call\u2581end|>",
    "DeepSeek, outer marks dropped": f"function<\uff5ctool\u2581sep\uff5c>say\n```json\n{J}\n```",
    "Llama, method": f'<|python_tag|>say.call(text="{ESCAPED}")',
    "Llama, among words": f'[say(text="{ESCAPED}")]',
    "inline code": f'`say(text="{ESCAPED}")`',
    "Gemma 4, bare": f'<|tool_call>:say{{text:<|"|>{S}<|"|>}}<tool_call|>',
    "name as attribute": f'<tool_call name="say">{J}</tool_call>',
    "name in the tag": f"<tool=say>{J}</tool>",
    "id as attribute": f'<tool_call id="1">{{"name": "say", "arguments": {J}}}</tool_call>',
    "param": f'<function name="say"><param name="text">{S}</param></function>',
    "Nemotron, small": f'<toolcall> {{"arguments": {J}, "name": "say"}} </toolcall>',
    "LongCat": f'<longcat_tool_call>{{"name": "say", "arguments": {J}}}</longcat_tool_call>',
    "Phi 4": f'<|tool_calls|>[{{"name": "say", "arguments": {J}}}]<|/tool_calls|>',
    "Functionary": f">>>say\n{J}",
    "Functionary, old": f"<|recipient|> say\n<|content|> {J}<|stop|>",
    "code tag": f'<code>say(text="{ESCAPED}")</code>',
    "XML in a fence": f'```xml\n<tool_call>{{"name": "say", "arguments": {J}}}</tool_call>\n```',
    "escaped": f'&lt;tool_call&gt;{{"name": "say", "arguments": {J}}}&lt;/tool_call&gt;',
    "ReAct, made-up result": f"Action: say\nAction Input: {J}\nObservation: It is said.",
    "Gemini, made-up result": f"```tool_code\nsay(text={json.dumps(S)})\n```\n```tool_outputs\nNo\n```",
    "Gemini, API": f'{{"functionCall": {{"name": "say", "args": {J}}}}}',
    "parallel": f'{{"tool_uses": [{{"recipient_name": "functions.say", "parameters": {J}}}]}}',
    "command": f'{{"command": "say", "args": {J}}}',
    "MiniMax 3": f']<]minimax[>[<tool_call>]<]minimax[>[<invoke name="say">]<]minimax[>[<text>{S}'
    "]<]minimax[>[</text>]<]minimax[>[</invoke>]<]minimax[>[</tool_call>",
    "Kimi 3": '<|open|>tools<|sep|><|open|>call tool="say" index="1"<|sep|><|open|>argument key="text" '
    f'type="string"<|sep|>{S}<|close|>argument<|sep|><|close|>call<|sep|><|close|>tools<|sep|>',
    "DSML, plain bars": '<|DSML|function_calls><|DSML|invoke name="say"><|DSML|parameter name="text">'
    f"{S}</|DSML|parameter></|DSML|invoke></|DSML|function_calls>",
    "LongCat, keys": "<longcat_tool_call>say<longcat_arg_key>text</longcat_arg_key>"
    f"<longcat_arg_value>{S}</longcat_arg_value></longcat_tool_call>",
    "Gemma 4, other quotes": f'<|tool_call|>call:say{{text:<|">{S}<|">}}<tool_call|>',
    "Functionary 3": f"<|from|> assistant\n<|recipient|> say\n<|content|> {J}",
    "Qwen agent": f"\u273fFUNCTION\u273f: say\n\u273fARGS\u273f: {J}\n\u273fRESULT\u273f",
    "Cline": f"<use_mcp_tool><tool_name>say</tool_name><arguments>{J}</arguments></use_mcp_tool>",
    "JavaScript": f"```js\nawait functions.say({{text: {json.dumps(S)}}});\n```",
    "ReAct, bold": f"**Thought:** {THOUGHT}\n**Action:** say\n**Action Input:** {J}",
    "ReAct, plan": f'Plan: I answer.\nAction: ```json\n[{{"tool_name": "say", "parameters": {J}}}]\n```',
    "Qwen coder, mark torn": f"<tool_call>\n<function=say\n<parameter=text>\n{S}\n</parameter></function></tool_call>",
    "Grok": f'<xai:function_call name="say"><parameter name="text">{S}</parameter></xai:function_call>',
    "ReAct, blank lines": f"Thought: {THOUGHT}\n\nAction: say\n\nAction Input: {J}",
    "name inside": f"<invoke><name>say</name><text>{S}</text></invoke>",
    "other keys": f'{{"Tool_Name": "say", "tool_args": {J}}}',
}
# What is no call, and stays as it is.
PROSE = (
    "He said: {name: say}, and left.",
    "I can look (at you) and give (you) ale.",
    "The sign reads [open] and (closed).",
    "Three < four, and five > two.",
    "Tools of the trade: hammer and tongs.",
    '"Aye", said the smith; "so be it."',
    "Give me 5 [coins] <3",
    "The analysis is final: no ale.",
    # what only looks like the beginning of a mark
    "I have 3 <oranges and pears in my bag.",
    "I like a<b and then go",
    "Take the sign [EAST",
    "I <3 you",
    # what only sounds like words about the reply
    "I will answer briefly, friend. The mill is closed.",
    "I'll reply as best I can. The north road is open.",
    "I'll reply as best I can.\nThe north road is open.",
    "I must answer as a keeper should. The mill is closed today.",
    "I should reply as Aria.\n\nWell met.\n\nI will stay in character.",
    "The user greets me, so I should answer. Well met.",
    "Thought: he greets me.\nFinal answer: well met.",
    "Aria, smiling warmly: Come in.",
    "Health: 20/20\n\nWell met.",
    "Well met.\n(OOC: back soon)",
    "Well met.\n---\nSit.",
    "((back soon)) Well met.",
    "[smiles] Well met.",
    "(laughs) Well met.",
    "You see the mill. What do you do?\n1. Go in\n2. Go on",
    "TOOL is a word of the smiths: TOOL say, TOOL give.",
    "TOOL look",
    "The user of the axe said we should hide. Come in!",
    "Let me think about how the road goes. North, then east.",
    "Keep in character, my mother said. Ha!",
    # what a player typed, and records of people
    'You wrote this, Bram:\n> TOOL give {"thing": "lamp", "to": "Bram"}\nI will not do that.',
    "You wrote this, Bram:\n> TOOL say: hello\nI will not do that.",
    "You told me this:\n> Action: say\n> Input: lamp\nNo.",
    "The boy's papers.\nName: Look\nAge: 12",
    "<internal> affairs are not mine.",
    "The <planned> road was never built.",
)
MARKS = sorted(
    {
        mark
        for text in (*SPOKEN.values(), *CALLED.values())
        for mark in re.findall(
            r"<[^<>\s]{1,30}>|\[/?[A-Z_]{3,}\]|[\u25c1<][^\u25c1<]{0,20}[\u25b7>]|assistantfinal",
            text,
        )
    }
)
PIECES = (*MARKS, *"<>[]{}/\n ", "<|", "|>", "im_end", "think", "Aye.", "say", J)
LEFT = re.compile(
    r"<\||\|>|\[/?INST\]|</?think|</?s>|</?tool_call|\[TOOL|_of_turn>|\[/?THINK|[\u25c1\u25b7\uff5c]",
    re.I,
)


class TestRead(unittest.TestCase):
    def test_spoken(self):
        """Of each form only the words are left."""
        for name, text in SPOKEN.items():
            with self.subTest(name):
                answer = read(text, TOOLS)
                self.assertEqual((answer.text, answer.calls), (S, ()))

    def test_called(self):
        """Each form is one call of the tool with its arguments, and nothing is said."""
        for name, text in CALLED.items():
            with self.subTest(name):
                ((tool, arguments),) = read(text, TOOLS).calls
                self.assertEqual((tool, json.loads(arguments)), ("say", {"text": S}))
                self.assertEqual(read(text, TOOLS).text, "")

    def test_words_around(self):
        """What is said beside a call in marks stays; several calls stay apart."""
        for name in ("Hermes", "Qwen coder", "Llama, tag", "LFM", "Kimi", "LM Studio", "Anthropic"):
            with self.subTest(name):
                text = f"Let me see. {CALLED[name]}{CALLED[name]}"
                answer = read(text, TOOLS)
                self.assertEqual((answer.text, len(answer.calls)), ("Let me see.", 2))

    def test_prose(self):
        """Prose is left alone, also beside the names of tools."""
        for text in PROSE:
            with self.subTest(text):
                answer = read(text, TOOLS)
                self.assertEqual((answer.text, answer.calls), (text, ()))

    def test_marks_in_a_story(self):
        """Words in marks that a story may hold are said where the marks stand in a sentence."""
        for text, said in (
            ("The sign says [END]. Turn there.", None),
            ("Well met. [END]\nBob: And?", "Well met."),
            ("The plan <plan>go north</plan>.", "The plan go north."),
            ("The <plan>road\n</plan>\nCome.", "The road\n\nCome."),
            ("<plan>I greet Bob.</plan>Well met.", "Well met."),
            ("Bob, waiting there: come in.", None),
            ("Bob, waiting there: Come in.", None),
            ("Bob, waiting: come in.", None),
            ("We sell:\n\u25b6 ale\n\u25b6 bread", None),
            ("**We sell:**\n\n\u25b6 ale\n\u25b6 bread\n\u25b6 mead", None),
            ("Well met.\n\n\u25b6 Sit\n\u25b6 Leave\n\u25b6 Eat", None),
            ("to=heaven", None),
            ("to=heaven we go.", None),
            ("to=user json{}", ""),
            ("<|channel|>final to=heaven<|message|>Well met.", "Well met."),
        ):
            with self.subTest(text):
                answer = read(text, TOOLS)
                self.assertEqual((answer.text, answer.calls), (text if said is None else said, ()))

    def test_tags_of_no_family(self):
        """Words in a tag that no model's template has are not taken away: they are a fault."""
        for text in (
            "<mood>warm</mood> Well met.",
            "Well met.\n<ooc>Back soon.</ooc>",
            "I said <note>go</note> to him.",
        ):
            said = read(text, TOOLS).text
            inner = re.search(r">([^<]+)<", text)[1]
            self.assertIn(inner, said)
            self.assertEqual(fault(said, "", [], []), MACHINE_TEXT)
        self.assertEqual(read("[silence]", TOOLS).text, "[silence]")

    def test_the_name_of_a_tool_alone(self):
        """It is a word that somebody says, unless it is the one that says nothing."""
        self.assertEqual((read("look", TOOLS).text, read("look", TOOLS).calls), ("look", ()))
        self.assertEqual(read("noop", TOOLS).text, "")

    def test_odd_calls(self):
        """Calls without arguments, and what cannot be read as a call.

        Without marks, only a tool that is there is called; in marks, any name is.
        """
        for text, calls in (
            ('{"name": "Old Tom", "type": "ferryman"}', ()),
            ('<tool_call>{"name": "dance", "arguments": {}}</tool_call>', (("dance", "{}"),)),
            ("<function=noop></function>", (("noop", "{}"),)),
            ('<think>I greet. <say>{"text": "Hi"}</say>', (("say", '{"text": "Hi"}'),)),
            (
                '{"action": "say", "toWhom": "Bob", "action_points": 2}',
                (("say", '{"toWhom": "Bob", "action_points": 2}'),),
            ),
            ("*noop*", (("noop", "{}"),)),
            ("say({[]: 1})", (("say", "{}"),)),
            ("Tool: say\nUse: nails", ()),
            ("Action: look\nAction Input:", (("look", "{}"),)),
            ("<function=say>lamp</function>", (("say", "lamp"),)),
            ('I look. {"name": "look", "arguments": {}}', ()),
            ('I say {"text": "lamp"', ()),
            ('He wrote {"tool": "dance", "args": {}} there.', ()),
            ('<tool_call>{"name": "look"}</tool_call>', (("look", "{}"),)),
            ('I note {"a": 1}, ' * 9 + '{"name": "look", "arguments": {}}', ()),
            ("I look(around me) and say(", ()),
            ('say("1" + x) is no call', ()),
            ("Whisper {X} at the back door.", ()),
            ("Look (at you), so grown!", ()),
            ('Hm, say("1" + x) is no call', ()),
            ("<tool_call>[say(text=lamp)]</tool_call>", ()),
            ("<tool_call>[1 + 1]</tool_call>", ()),
            ("<tool_call>[look(1)]</tool_call>", ()),
            ("<tool_call>[say(</tool_call>", ()),
            ("<tool_call>" + "[" * 4_000 + "</tool_call>", ()),
        ):
            with self.subTest(text[:60]):
                self.assertEqual(read(text, TOOLS).calls, calls)

    def test_only_marks(self):
        """A text of marks or thoughts alone says nothing."""
        for text in (
            "<think>Bob greets",
            "<|im_end|>",
            "<think></think>",
            "analysisHm.assistantfinal",
            "",
        ):
            with self.subTest(text):
                self.assertEqual(read(text).text, "")
        self.assertEqual(read(S.replace(" ", "\u0120")).text, S)

    def test_reports(self):
        """In a report, marks that somebody typed erase nothing."""
        typed = "Bob typed </think> and <|im_end|>, and laughed.\nThen he left."
        quoted = f'He wrote "<think>" and {CALLED["Hermes"]}.'
        for before in ("", f"<think>{THOUGHT}</think>\n", f"{THOUGHT}\n</think>\n"):
            self.assertEqual(read(before + typed, reported=True).text, typed)
        listed = "- Bram typed this:\n- TOOL say: hello\n- He left."
        for told in (quoted, listed):
            answer = read(told, reported=True)
            self.assertEqual((answer.text, answer.calls), (told, ()))
        call = read(CALLED["Hermes"], reported=True)
        self.assertEqual((call.text, len(call.calls)), ("", 1))

    def test_runaway(self):
        """Of very many calls the first are made; a very long text takes no long time."""
        self.assertEqual(len(read(CALLED["Hermes"] * 99, TOOLS).calls), MOST_CALLS)
        self.assertEqual(read('[{"a":' * 600 + "1" + "}]" * 600, TOOLS).calls, ())
        nested = '<tool_call>{"name": "say", "arguments": ' + '{"text": ' * 400
        self.assertEqual(read(nested, TOOLS).calls, ())
        marks = ("<think>", "</think>", "<tool_call>", "<|im_start|>", "<say>", "<escape>")
        for piece in (*marks, "[TOOL_CALLS]", *"{( \n"):
            for before in ("", "analysis", "Thought:", "Scene:"):
                assert_not_square(
                    lambda text: read(text, TOOLS),
                    lambda size, before=before, piece=piece: before + piece * size,
                    20_000,
                )
        for piece in ("\n", " \n", "\n\n", "\n(a)\n\n", "a\n", *" \u3000-<[(*>|\"'#"):
            assert_not_square(
                lambda text: read(text, TOOLS),
                lambda size, piece=piece: "x" + (piece * size)[:size] + "x",
                4_000,
            )

    @FEW
    @given(st.lists(st.sampled_from(PIECES), max_size=12).map("".join))
    def test_no_mark_is_spoken(self, text):
        """Whatever a text is made of, no mark of it is spoken, and nothing raises."""
        answer = read(text, TOOLS)
        self.assertIsNone(LEFT.search(answer.text), answer)
        self.assertEqual(read(text, TOOLS), answer)

    @given(st.sampled_from([*SPOKEN.values(), *CALLED.values()]), st.floats(0, 1))
    def test_cut_off(self, text, share):
        """A reply that was broken off anywhere is read, and no mark of it is spoken."""
        answer = read(text[: int(share * len(text))], TOOLS)
        self.assertIsNone(LEFT.search(answer.text), answer)

    def test_around(self):
        """Line ends of other systems, and blanks of any kind around a reply, change nothing."""
        for name, text in {**SPOKEN, **CALLED}.items():
            with self.subTest(name):
                around = "\ufeff\n \u200b" + text.replace("\n", "\r\n") + "\r\n\u200b"
                one, other = read(around, TOOLS), read(text, TOOLS)
                self.assertEqual((one.text, one.calls), (other.text, other.calls))

    @FEW
    @given(st.text())
    def test_any_text(self, text):
        """No text raises; one without marks stays, but for blanks around it.

        A byte order mark is none of its signs, and blanks of no width are blanks.
        """
        answer = read(text, TOOLS)
        stays = text.replace("\ufeff", "").strip(" \t\r\n\u200b\u2060")
        if not re.search(
            r"[<>\[\]{}()|`\\\u25c1\u25b7\u2581\uff5c#]|analysis|Action|(?i:^null)", text
        ):
            self.assertEqual(answer.text.split(), stays.split())


class TestRepaired(unittest.TestCase):
    def test_names(self):
        """A prefix, another case or other signs still name the tool."""
        spaces = (
            "functions.say",
            "default_api:say",
            "tools/say",
            "functions.say ",
            "functions.say:0",
        )
        words = ("Say", "SAY", "mcp__game__say", "functions_say", "say_tool", "say()")
        for name in (*spaces, *words, "say<|channel|>commentary"):
            with self.subTest(name):
                self.assertEqual(repaired(name, "{}", TOOLS), ("say", "{}"))
        for name in ("searchMemory", "search-memory", "Search_Memory", "search memory"):
            self.assertEqual(repaired(name, "{}", TOOLS)[0], "search_memory")
        self.assertEqual(repaired("dance", "{}", TOOLS), ("dance", "{}"))

    def test_arguments(self):
        """Quoted twice, fenced or torn arguments are read; others stay as they are."""
        whole = {"text": S}
        for text in (
            J,
            json.dumps(J),
            json.dumps(json.dumps(J)),
            f"```json\n{J}\n```",
            J[:-1],
            J[:-1] + ",}",
            "{}" + J,
            J + J,
            f"[{J}]",
            f"json\n{J}",
            f"<|constrain|>json<|message|>{J}",
            f"<arg_key>text</arg_key><arg_value>{S}</arg_value>",
            f"text={json.dumps(S)}",
        ):
            with self.subTest(text):
                self.assertEqual(json.loads(repaired("say", text, TOOLS)[1]), whole)
        for text in ("", "{}", "null", "None", "{}{}"):
            self.assertEqual(repaired("say", text, TOOLS)[1], "{}")
        self.assertEqual(repaired("say", "[1]", TOOLS)[1], "[1]")
        self.assertEqual(repaired("give", "hello", TOOLS)[1], "hello")

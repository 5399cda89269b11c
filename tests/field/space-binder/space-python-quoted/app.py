import gradio as gr

import streamlit
